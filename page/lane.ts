import type { TranslationOffer } from './api.js';
import { figure } from './charts.js';
import { compared, takenBack } from './compare.js';
import { Explain, html, TERMS } from './html.js';
import { choiceFor, type Knob, kindOf, type PolicyChoice, policyKinds, startOf } from './policies.js';
import { namesOf } from './run-charts.js';
import type { LiveEvent } from './sessions.js';

/** What a lane translates with. */
export interface LaneSetting {
  readonly name: string;
  readonly run: string;
  /** Where the model runs. */
  readonly place: string;
  readonly policy: PolicyChoice;
}

export interface LaneProps {
  readonly setting: LaneSetting;
  readonly state: LaneState;
  readonly translation: TranslationOffer;
  /** A human translation of the sentence, if known. */
  readonly reference: string | undefined;
  /** While a sentence is in progress, the policy can change and the model cannot. */
  readonly busy: boolean;
  readonly onChange: (setting: LaneSetting) => void;
  readonly onRemove?: () => void;
}

export function Lane({ setting, state, translation, reference, busy, onChange, onRemove }: LaneProps) {
  const last = state.events.at(-1);
  const title = `Setting ${setting.name.toUpperCase()}`;
  const { about, target: language } = runOf(translation, setting.run) ?? {};
  const target = knownLanguage(language);
  const isCompared = state.phase === 'done' && reference !== undefined;
  const back = state.before === undefined ? '' : takenBack(state.before, state.text);
  return html`
    <section class="card lane" aria-label=${title}>
      <div class="lane-head">
        <h2>${title}</h2>
        ${onRemove && html`<button type="button" class="quiet" onClick=${onRemove}>Remove</button>`}
      </div>
      <${Settings} ...${{ setting, translation, busy, onChange }} />
      ${about && html`<p class="hint">Built-in model, ${about}.</p>`}
      ${state.runsOn && html`<p class="hint runs-on" role="status">Runs in this page: ${state.runsOn}.</p>`}
      <div class=${reference === undefined ? 'result' : 'result two'}>
        <div>
          <h3>Translation</h3>
          <p class="output" aria-live="polite" lang=${target}>
            ${
              state.text === ''
                ? html`<span class="hint">${state.before === undefined ? HINTS[state.phase] : 'Reading again …'}</span>`
                : html`<${Marked} text=${state.text} other=${isCompared ? reference : undefined} />`
            }
          </p>
          ${back !== '' && html`<p class="taken-back">taken back: <del>${back}</del></p>`}
        </div>
        ${
          reference !== undefined &&
          html`<div>
            <h3>Reference</h3>
            <p class="reference" lang=${target}>
              <${Marked} text=${reference} other=${isCompared ? state.text : undefined} />
            </p>
          </div>`
        }
      </div>
      ${state.message && html`<p class=${state.phase === 'failed' ? 'message failed' : 'message'} role="status">${state.message}</p>`}
      <div class="measures">
        <${Staircase} events=${state.events} />
        <dl>
          <div><dt>tokens read</dt><dd>${last?.read ?? 0}</dd></div>
          <div><dt>written</dt><dd>${last?.written ?? 0}</dd></div>
          <div><dt>AL <${Explain} what="AL" text=${TERMS.AL} /></dt><dd>${figure(last?.AL)}</dd></div>
          <div><dt>AP <${Explain} what="AP" text=${TERMS.AP} /></dt><dd>${figure(last?.AP)}</dd></div>
        </dl>
      </div>
    </section>
  `;
}

const HINTS: Readonly<Record<LaneState['phase'], string>> = {
  idle: 'The translation appears here.',
  opening: 'Opening the model …',
  running: 'Reading …',
  done: 'Nothing was written.',
  failed: '',
};

/** The language for screen readers; those of the toy pair have none. */
function knownLanguage(language: string | undefined): string | undefined {
  return language !== undefined && /^[a-z]{2}(?:-|$)/i.test(language) ? language : undefined;
}

function runOf({ runs }: TranslationOffer, id: string) {
  return runs.find((run) => run.id === id);
}

function Settings({ setting, translation, busy, onChange }: Omit<LaneProps, 'state' | 'reference' | 'onRemove'>) {
  const { policy } = setting;
  const offered = runOf(translation, setting.run)?.policies ?? [];
  const names = namesOf(translation.runs);
  const setRun = (id: string) => {
    const run = runOf(translation, id);
    if (run !== undefined) set({ run: id, policy: run.policies.includes(policy.kind) ? policy : choiceFor(run) });
  };
  const set = (change: Partial<LaneSetting>) => onChange({ ...setting, ...change });
  const choose = (event: Event) => (event.currentTarget as HTMLSelectElement).value;
  return html`
    <div class="settings">
      <label>
        Model
        <select disabled=${busy} title=${setting.run} value=${setting.run} onChange=${(event: Event) => setRun(choose(event))}>
          ${translation.runs.map(({ id, source, target }) => html`<option value=${id}>${`${names.get(id)} (${source} → ${target})`}</option>`)}
        </select>
      </label>
      ${
        translation.places.length > 1 &&
        html`<label>
          Runs in
          <select
            disabled=${busy}
            value=${setting.place}
            onChange=${(event: Event) => set({ place: choose(event) })}
          >
            <option value="server">the server</option>
            <option value="page">this page</option>
          </select>
        </label>`
      }
      <div class="explained">
        <label>
          Policy
          <select value=${policy.kind} onChange=${(event: Event) => set({ policy: startOf(choose(event)) })}>
            ${policyKinds
              .filter(({ name }) => offered.includes(name))
              .map(({ name, title, help }) => html`<option value=${name} title=${help}>${title}</option>`)}
          </select>
        </label>
        <${Explain} what=${kindOf(policy.kind).title} text=${`${kindOf(policy.kind).title}: ${kindOf(policy.kind).help}.`} />
      </div>
      ${kindOf(policy.kind).knobs.map(
        (knob) => html`<${KnobInput}
          knob=${knob}
          value=${policy.values[knob.name]}
          onChange=${(value: number) => set({ policy: { ...policy, values: { ...policy.values, [knob.name]: value } } })}
        />`,
      )}
    </div>
  `;
}

function KnobInput({ knob, value, onChange }: { knob: Knob; value: number; onChange: (value: number) => void }) {
  const { label, min, max, step } = knob;
  return html`
    <label class="knob">
      <span>${label} = <b>${value}</b></span>
      <input
        type="range"
        ...${{ min, max, step, value }}
        onInput=${(event: Event) => onChange(Number((event.currentTarget as HTMLInputElement).value))}
      />
    </label>
  `;
}

/** An event, and when it happened: milliseconds after the first word. */
export interface TimedEvent extends LiveEvent {
  readonly at: number;
}

/** What a lane shows about its sentence. */
export interface LaneState {
  readonly phase: 'idle' | 'opening' | 'running' | 'done' | 'failed';
  readonly events: readonly TimedEvent[];
  readonly text: string;
  /** What was written before a word of the source was changed. */
  readonly before?: string;
  /** What computes, if the model runs in this page. */
  readonly runsOn?: string;
  /** An error, or a note about the result. */
  readonly message?: string;
}

export type LaneChange =
  | { readonly type: 'clear' }
  /** `again`: words that were read have changed, and what was written is taken back as far as it changes. */
  | { readonly type: 'begin'; readonly again: boolean }
  | { readonly type: 'ready'; readonly runsOn?: string }
  | { readonly type: 'event'; readonly event: TimedEvent }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'done'; readonly endedEarly: boolean }
  | { readonly type: 'fail'; readonly message: string };

export const emptyLane: LaneState = { phase: 'idle', events: [], text: '' };

export function changeLane(state: LaneState, change: LaneChange): LaneState {
  switch (change.type) {
    case 'clear':
      return emptyLane;
    case 'begin':
      return { phase: 'opening', events: [], text: '', ...(change.again && { before: longer(state) }) };
    case 'ready':
      return { ...state, runsOn: change.runsOn, ...(state.phase === 'opening' && { phase: 'running' }) };
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

/** While the user types, what was last withdrawn stays in view. */
function longer({ text, before = '' }: LaneState): string {
  return text.length >= before.length ? text : before;
}

const ENDED_EARLY = 'The model ended the sentence before all of it had been read.';

/** How far writing lags behind reading: a step to the right for each READ, one up for each WRITE. */
function Staircase({ events }: { events: readonly LiveEvent[] }) {
  const last = events.at(-1);
  const size = Math.max(8, last?.read ?? 0, last?.written ?? 0);
  const unit = SIDE / size;
  const points = [
    '0,0',
    ...events.map(({ read, written }) => `${(read * unit).toFixed(1)},${(-written * unit).toFixed(1)}`),
  ];
  const behind = last === undefined ? 'nothing read yet' : `${last.read} tokens read, ${last.written} written`;
  return html`
    <div class="staircase">
      <svg viewBox=${`-14 ${-SIDE - 4} ${SIDE + 18} ${SIDE + 18}`} role="img" aria-label=${behind}>
        <line class="ideal" x1="0" y1="0" x2=${SIDE} y2=${-SIDE} />
        <path class="axis" d=${`M0 ${-SIDE} V0 H${SIDE}`} />
        <polyline points=${points.join(' ')} />
        <text x=${SIDE} y="11" text-anchor="end">read</text>
        <text x="-4" y=${-SIDE} text-anchor="end" transform=${`rotate(-90 -4 ${-SIDE})`}>written</text>
        <text x="-2" y="11" text-anchor="middle">0</text>
      </svg>
      <${Explain} what="the staircase" text=${TERMS.staircase} />
    </div>
  `;
}

const SIDE = 100;

/** A text with the pieces marked that the other text does not have. */
export function Marked({ text, other }: { text: string; other: string | undefined }) {
  if (other === undefined) return text;
  return html`${compared(text, other).map(({ word, space, isShared }) =>
    isShared ? word + space : html`<mark>${word}</mark>${space}`,
  )}`;
}
