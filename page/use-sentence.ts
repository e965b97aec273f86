import { useReducer, useRef, useState } from 'preact/hooks';
import type { LaneSetting } from './lane.js';
import { changeLane, emptyLane, type LaneChange, type LaneState } from './lane-state.js';
import { beginInPage } from './page-session.js';
import { Player } from './player.js';
import { specOf } from './policies.js';
import { beginOnServer } from './server-session.js';
import type { Session, SessionListener } from './session.js';
import { completeWords, isBeginning, wordsOf } from './words.js';

interface UnderWay {
  /** By lane; one that is done is taken out. */
  readonly sessions: Map<string, Session>;
  /** Typed words that have been sent, in all lanes the same. */
  readonly sent: string[];
  /** No word can follow. */
  ended: boolean;
  player?: Player;
}

/** The sentence that is being played or typed, in all lanes at once. */
export function useSentence(settings: readonly LaneSetting[], pace: number) {
  const [states, dispatch] = useReducer(changeLanes, {});
  const [busy, setBusy] = useState(false);
  const current = useRef<UnderWay | undefined>(undefined);
  const restart = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const now = useRef({ settings, pace });
  now.current = { settings, pace };

  const drop = () => {
    clearTimeout(restart.current);
    restart.current = undefined;
    current.current?.player?.stop();
    for (const session of current.current?.sessions.values() ?? []) session.stop();
    current.current = undefined;
  };
  const stop = () => {
    drop();
    setBusy(false);
  };
  const clear = () => {
    for (const { name } of now.current.settings) dispatch({ lane: name, change: { type: 'clear' } });
  };

  const begin = () => {
    drop();
    setBusy(true);
    const sessions = new Map<string, Session>();
    const own: UnderWay = { sessions, sent: [], ended: false };
    current.current = own;
    const leave = (name: string) => {
      sessions.delete(name);
      if (sessions.size === 0 && current.current === own) stop();
    };
    for (const setting of now.current.settings) {
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
    if (current.current !== undefined) current.current.ended = true;
    for (const session of [...(current.current?.sessions.values() ?? [])]) session.end();
  };

  const send = (own: UnderWay, words: readonly string[]) => {
    for (const word of words.slice(own.sent.length)) {
      push(word);
      own.sent.push(word);
    }
  };
  /** Begins with the words when typing pauses: a word that is being changed is another one at every key. */
  const beginSoon = (words: readonly string[]) => {
    clearTimeout(restart.current);
    restart.current = setTimeout(() => {
      if (words.length > 0) send(begin(), words);
      else stop();
    }, PAUSE);
  };

  return {
    states,
    busy,
    stop,
    /** Plays words at the pace, once all models are open. */
    play(words: readonly string[]) {
      const own = begin();
      own.player = new Player(words, { word: push, end }, () => now.current.pace);
      Promise.all([...own.sessions.values()].map(({ ready }) => ready)).then(() => {
        if (current.current === own) own.player?.start();
      });
    },
    /**
     * Takes in the words that have been typed since. Where words that were sent are no longer on the screen, what was
     * made of them goes too, and the sentence begins again.
     */
    follow(text: string) {
      const words = completeWords(text);
      const own = current.current;
      if (restart.current !== undefined) beginSoon(words);
      else if (own === undefined || own.ended) {
        if (words.length > 0) send(begin(), words);
      } else if (isBeginning(own.sent, wordsOf(text))) send(own, words);
      else {
        drop();
        clear();
        beginSoon(words);
      }
    },
    /** The typed sentence is complete. */
    finish(text: string) {
      const words = wordsOf(text);
      const own = current.current;
      if (words.length === 0) return;
      const goesOn = own !== undefined && !own.ended && isBeginning(own.sent, words);
      send(goesOn ? own : begin(), words);
      end();
    },
    changePolicy(lane: string, spec: string) {
      current.current?.sessions.get(lane)?.changePolicy(spec);
    },
  };
}

/** Milliseconds without a key after which a changed sentence begins again. */
const PAUSE = 400;

function sessionOf({ run, place, policy }: LaneSetting, listener: SessionListener): Session {
  const begin = place === 'server' ? beginOnServer : beginInPage;
  return begin(run, specOf(policy), listener);
}

type LaneStates = Readonly<Record<string, LaneState>>;

function changeLanes(states: LaneStates, { lane, change }: { lane: string; change: LaneChange }): LaneStates {
  return { ...states, [lane]: changeLane(states[lane] ?? emptyLane, change) };
}
