import type { LiveEvent } from './session.js';

/** What a lane shows of its sentence. */
export interface LaneState {
  readonly phase: 'idle' | 'opening' | 'running' | 'done' | 'failed';
  readonly events: readonly LiveEvent[];
  readonly text: string;
  /** What went wrong, or what has to be known about the result. */
  readonly message?: string;
}

export type LaneChange =
  | { readonly type: 'clear' }
  | { readonly type: 'begin' }
  | { readonly type: 'ready' }
  | { readonly type: 'event'; readonly event: LiveEvent }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'done'; readonly endedEarly: boolean }
  | { readonly type: 'fail'; readonly message: string };

export const emptyLane: LaneState = { phase: 'idle', events: [], text: '' };

export function changeLane(state: LaneState, change: LaneChange): LaneState {
  switch (change.type) {
    case 'clear':
      return emptyLane;
    case 'begin':
      return { phase: 'opening', events: [], text: '' };
    case 'ready':
      return state.phase === 'opening' ? { ...state, phase: 'running' } : state;
    case 'event':
      return { ...state, events: [...state.events, change.event] };
    case 'text':
      return { ...state, text: state.text + change.text };
    case 'done':
      return { ...state, phase: 'done', message: change.endedEarly ? ENDED_EARLY : undefined };
    case 'fail':
      return { ...state, phase: 'failed', message: change.message };
  }
}

const ENDED_EARLY = 'The model ended the sentence before all of it had been read.';
