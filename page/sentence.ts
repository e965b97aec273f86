import { useReducer, useRef, useState } from 'preact/hooks';
import { changeLane, emptyLane, type LaneChange, type LaneSetting, type LaneState } from './lane.js';
import { specOf } from './policies.js';
import { beginInPage, beginOnServer, type SentenceSession, type SessionListener } from './sessions.js';

interface UnderWay {
  /** When its first word was sent; undefined before. */
  began?: number;
  /** By lane; finished ones are removed. */
  readonly sessions: Map<string, SentenceSession>;
  /** Typed words that have been sent, in all lanes the same. */
  readonly sent: string[];
  /** No word can follow. */
  ended: boolean;
  player?: Player;
}

/** The sentence that is being played or typed, in all lanes at once. */
export function useSentence(settings: readonly LaneSetting[], pace: number) {
  const [states, dispatch] = useReducer(changeLanes, {});
  const [arrivals, setArrivals] = useState<readonly number[]>([]);
  const [sentence, setSentence] = useState('');
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
    setArrivals([]);
    setSentence('');
    for (const { name } of now.current.settings) dispatch({ lane: name, change: { type: 'clear' } });
  };

  const begin = (again = false) => {
    drop();
    setBusy(true);
    setArrivals([]);
    const sessions = new Map<string, SentenceSession>();
    const own: UnderWay = { sessions, sent: [], ended: false };
    current.current = own;
    const leave = (name: string) => {
      sessions.delete(name);
      if (sessions.size === 0 && current.current === own) stop();
    };
    for (const setting of now.current.settings) {
      const change = (what: LaneChange) => dispatch({ lane: setting.name, change: what });
      change({ type: 'begin', again });
      const session = sessionOf(setting, {
        onEvent: (event) => change({ type: 'event', event: { ...event, at: sinceBegin(own) } }),
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
      session.ready.then((runsOn) => change({ type: 'ready', runsOn }));
    }
    return own;
  };

  /** Notes the time of a word, or of the end. */
  const arrive = () => {
    const own = current.current;
    if (own === undefined) return;
    own.began ??= performance.now();
    const time = sinceBegin(own);
    setArrivals((before) => [...before, time]);
  };
  const push = (words: readonly string[]) => {
    arrive();
    for (const session of current.current?.sessions.values() ?? []) session.push(words);
  };
  const end = () => {
    if (current.current !== undefined) current.current.ended = true;
    arrive();
    for (const session of [...(current.current?.sessions.values() ?? [])]) session.end();
  };

  const send = (own: UnderWay, words: readonly string[]) => {
    const more = words.slice(own.sent.length);
    if (more.length === 0) return;
    push(more);
    own.sent.push(...more);
  };
  /** Starts with the words when typing pauses: a word being edited changes with every key. */
  const beginSoon = (words: readonly string[]) => {
    clearTimeout(restart.current);
    restart.current = setTimeout(() => {
      if (words.length > 0) send(begin(true), words);
      else {
        stop();
        clear();
      }
    }, PAUSE);
  };

  return {
    states,
    /** When words arrived, and the end, in milliseconds after the first. */
    arrivals,
    /** The sentence that was played or is complete; empty while typing. */
    sentence,
    busy,
    stop,
    clear: () => {
      stop();
      clear();
    },
    /** Plays words at the pace, once all models are open. */
    play(words: readonly string[]) {
      setSentence(words.join(' '));
      const own = begin();
      own.player = new Player(words, { word: (word) => push([word]), end }, () => now.current.pace);
      Promise.all([...own.sessions.values()].map(({ ready }) => ready)).then(() => {
        if (current.current === own) own.player?.start();
      });
    },
    /**
     * Processes the words typed since. If words that were sent are no longer on the screen, the
     * sentence is read again: what is written is the same up to the first word that changed.
     */
    follow(text: string) {
      const words = completeWords(text);
      const own = current.current;
      if (text.trim() === '') {
        stop();
        clear();
      } else if (restart.current !== undefined) beginSoon(words);
      else if (own === undefined || own.ended) {
        if (words.length > 0) send(begin(), words);
      } else if (isBeginning(own.sent, wordsOf(text))) send(own, words);
      else {
        drop();
        setArrivals([]);
        for (const { name } of now.current.settings) dispatch({ lane: name, change: { type: 'begin', again: true } });
        beginSoon(words);
      }
    },
    /** The typed sentence is complete. */
    finish(text: string) {
      const words = wordsOf(text);
      const own = current.current;
      if (words.length === 0) return;
      const goesOn = own !== undefined && !own.ended && isBeginning(own.sent, words);
      setSentence(words.join(' '));
      send(goesOn ? own : begin(own !== undefined || restart.current !== undefined), words);
      end();
    },
    changePolicy(lane: string, spec: string) {
      current.current?.sessions.get(lane)?.changePolicy(spec);
    },
  };
}

function sinceBegin({ began }: UnderWay): number {
  return began === undefined ? 0 : performance.now() - began;
}

/** Milliseconds without a key after which a changed sentence begins again. */
const PAUSE = 400;

function sessionOf({ run, place, policy }: LaneSetting, listener: SessionListener): SentenceSession {
  const begin = place === 'server' ? beginOnServer : beginInPage;
  return begin(run, specOf(policy), listener);
}

type LaneStates = Readonly<Record<string, LaneState>>;

function changeLanes(states: LaneStates, { lane, change }: { lane: string; change: LaneChange }): LaneStates {
  return { ...states, [lane]: changeLane(states[lane] ?? emptyLane, change) };
}

/** Plays words one by one at a pace that may change. */
class Player {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private at = 0;

  constructor(
    private readonly words: readonly string[],
    private readonly on: { word(word: string): void; end(): void },
    /** Words per second, queried before each word. */
    private readonly pace: () => number,
  ) {}

  start(): void {
    this.next();
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private next(): void {
    if (this.at < this.words.length) {
      this.on.word(this.words[this.at++]);
      this.timer = setTimeout(() => this.next(), 1000 / this.pace());
    } else this.on.end();
  }
}

/** The words of a text, as they arrive one by one. */
export function wordsOf(text: string): string[] {
  return text.split(/\s+/u).filter((word) => word !== '');
}

/** Those that are complete while the text is being typed: a word is when white space follows it. */
function completeWords(text: string): string[] {
  const words = wordsOf(text);
  return /\s$/u.test(text) ? words : words.slice(0, -1);
}

/** Whether the words are the first of the others. */
function isBeginning(words: readonly string[], others: readonly string[]): boolean {
  return words.every((word, i) => word === others[i]);
}
