import { useReducer, useRef, useState } from 'preact/hooks';
import type { LaneSetting } from './lane.js';
import { changeLane, emptyLane, type LaneChange, type LaneState } from './lane-state.js';
import { beginInPage } from './page-session.js';
import { Player } from './player.js';
import { specOf } from './policies.js';
import { beginOnServer } from './server-session.js';
import type { Session, SessionListener } from './session.js';

interface UnderWay {
  /** By lane; one that is done is taken out. */
  readonly sessions: Map<string, Session>;
  /** Typed words that have been sent. */
  pushed: number;
  player?: Player;
}

/** The sentence that is being played or typed, in all lanes at once. */
export function useSentence(settings: readonly LaneSetting[], pace: number) {
  const [states, dispatch] = useReducer(changeLanes, {});
  const [busy, setBusy] = useState(false);
  const current = useRef<UnderWay | undefined>(undefined);
  const paceNow = useRef(pace);
  paceNow.current = pace;

  const stop = () => {
    current.current?.player?.stop();
    for (const session of current.current?.sessions.values() ?? []) session.stop();
    current.current = undefined;
    setBusy(false);
  };

  const begin = () => {
    stop();
    setBusy(true);
    const sessions = new Map<string, Session>();
    const own: UnderWay = { sessions, pushed: 0 };
    current.current = own;
    const leave = (name: string) => {
      sessions.delete(name);
      if (sessions.size === 0 && current.current === own) stop();
    };
    for (const setting of settings) {
      const change = (what: LaneChange) => dispatch({ lane: setting.name, change: what });
      change({ type: 'begin' });
      const session = sessionOf(setting, {
        onEvent: (event) => change({ type: 'event', event }),
        onText: (piece) => change({ type: 'text', text: piece }),
        onDone: (endedEarly) => {
          change({ type: 'done', endedEarly });
          leave(setting.name);
        },
        onError: (message) => {
          change({ type: 'fail', message });
          leave(setting.name);
        },
      });
      sessions.set(setting.name, session);
      session.ready.then(() => change({ type: 'ready' }));
    }
    return own;
  };

  const push = (word: string) => {
    for (const session of current.current?.sessions.values() ?? []) session.push(word);
  };
  const end = () => {
    for (const session of [...(current.current?.sessions.values() ?? [])]) session.end();
  };

  return {
    states,
    busy,
    stop,
    /** Plays words at the pace, once all models are open. */
    play(words: readonly string[]) {
      const own = begin();
      own.player = new Player(words, { word: push, end }, () => paceNow.current);
      Promise.all([...own.sessions.values()].map(({ ready }) => ready)).then(() => {
        if (current.current === own) own.player?.start();
      });
    },
    /** Takes in the words that have been typed since. */
    follow(words: readonly string[]) {
      if (words.length === 0) return;
      const own = current.current ?? begin();
      for (const word of words.slice(own.pushed)) push(word);
      own.pushed = Math.max(own.pushed, words.length);
    },
    /** The typed sentence is complete. */
    finish(words: readonly string[]) {
      this.follow(words);
      end();
    },
    changePolicy(lane: string, spec: string) {
      current.current?.sessions.get(lane)?.changePolicy(spec);
    },
  };
}

function sessionOf({ run, place, policy }: LaneSetting, listener: SessionListener): Session {
  const begin = place === 'server' ? beginOnServer : beginInPage;
  return begin(run, specOf(policy), listener);
}

type LaneStates = Readonly<Record<string, LaneState>>;

function changeLanes(states: LaneStates, { lane, change }: { lane: string; change: LaneChange }): LaneStates {
  return { ...states, [lane]: changeLane(states[lane] ?? emptyLane, change) };
}
