import { useReducer, useRef, useState } from 'preact/hooks';
import { type ArrivingWord, arrivalsOfLine, arrivedWords, arrivingWords } from 'tcts/translate/text/arriving.js';
import { changeLane, emptyLane, type LaneChange, type LaneSetting, type LaneState } from './lane.js';
import { specOf } from './policies.js';
import { beginInPage, beginOnServer, type SentenceSession, type SessionListener } from './sessions.js';

/** A lane that reads the sentence. */
interface Reader {
  readonly session: SentenceSession;
  readonly byCharacter: boolean;
  /** What it has been sent. */
  readonly sent: ArrivingWord[];
}

interface UnderWay {
  /** When its first word was sent; undefined before. */
  began?: number;
  /** By lane; finished ones are removed. */
  readonly readers: Map<string, Reader>;
  /** No word can follow. */
  ended: boolean;
  player?: Player;
}

/**
 * The sentence that is being played or typed, in all lanes at once: each reads the same text in words or in characters,
 * as its model does (`byCharacter` of a run).
 */
export function useSentence(settings: readonly LaneSetting[], pace: number, byCharacter: (run: string) => boolean) {
  const [states, dispatch] = useReducer(changeLanes, {});
  const [arrivals, setArrivals] = useState<readonly number[]>([]);
  const [sentence, setSentence] = useState('');
  const [busy, setBusy] = useState(false);
  const current = useRef<UnderWay | undefined>(undefined);
  const restart = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const now = useRef({ settings, pace, byCharacter });
  now.current = { settings, pace, byCharacter };

  const drop = () => {
    clearTimeout(restart.current);
    restart.current = undefined;
    current.current?.player?.stop();
    for (const { session } of current.current?.readers.values() ?? []) session.stop();
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
    const readers = new Map<string, Reader>();
    const own: UnderWay = { readers, ended: false };
    current.current = own;
    const leave = (name: string) => {
      readers.delete(name);
      if (readers.size === 0 && current.current === own) stop();
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
      readers.set(setting.name, { session, byCharacter: now.current.byCharacter(setting.run), sent: [] });
      session.ready.then((runsOn) => change({ type: 'ready', runsOn }));
    }
    return own;
  };

  /** Notes the time of a word, or of the end. */
  const arrive = (own: UnderWay) => {
    own.began ??= performance.now();
    const time = sinceBegin(own);
    setArrivals((before) => [...before, time]);
  };
  /** Gives each lane what has arrived for it since. */
  const send = (own: UnderWay, text: string) => {
    const news = [...own.readers.values()].flatMap((reader) => {
      const words = arrivedWords(text, reader.byCharacter).slice(reader.sent.length);
      return words.length > 0 ? [{ reader, words }] : [];
    });
    if (news.length > 0) arrive(own);
    for (const { reader, words } of news) {
      reader.session.push(words);
      reader.sent.push(...words);
    }
  };
  const end = (own: UnderWay) => {
    own.ended = true;
    arrive(own);
    for (const { session } of [...own.readers.values()]) session.end();
  };
  /** Something of the text has arrived for a lane. */
  const hasArrived = (text: string) =>
    now.current.settings.some(({ run }) => arrivedWords(text, now.current.byCharacter(run)).length > 0);
  /** Starts with the text when typing pauses: a word being edited changes with every key. */
  const beginSoon = (text: string) => {
    clearTimeout(restart.current);
    restart.current = setTimeout(() => {
      if (hasArrived(text)) send(begin(true), text);
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
    /** Plays a line at the pace, once all models are open: by characters if a lane reads by characters. */
    play(line: string) {
      setSentence(singleSpaced(line));
      const own = begin();
      const readers = [...own.readers.values()];
      const texts = arrivalsOfLine(
        line,
        readers.some(({ byCharacter }) => byCharacter),
      );
      own.player = new Player(texts, { text: (text) => send(own, text), end: () => end(own) }, () => now.current.pace);
      Promise.all(readers.map(({ session }) => session.ready)).then(() => {
        if (current.current === own) own.player?.start();
      });
    },
    /**
     * Processes what was typed since. If words or characters that were sent are no longer on the screen, the
     * sentence is read again: what is written is the same up to the first one that changed.
     */
    follow(text: string) {
      const own = current.current;
      if (text.trim() === '') {
        stop();
        clear();
      } else if (restart.current !== undefined) beginSoon(text);
      else if (own === undefined || own.ended) {
        if (hasArrived(text)) send(begin(), text);
      } else if (isContinued(own, text)) send(own, text);
      else {
        drop();
        setArrivals([]);
        for (const { name } of now.current.settings) dispatch({ lane: name, change: { type: 'begin', again: true } });
        beginSoon(text);
      }
    },
    /** The typed sentence is complete. */
    finish(text: string) {
      const before = current.current;
      if (text.trim() === '') return;
      const goesOn = before !== undefined && !before.ended && isContinued(before, text);
      setSentence(singleSpaced(text));
      const own = goesOn ? before : begin(before !== undefined || restart.current !== undefined);
      send(own, `${text} `);
      end(own);
    },
    changePolicy(lane: string, spec: string) {
      current.current?.readers.get(lane)?.session.changePolicy(spec);
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

/** Plays a line as it grows by a word or a character, at a pace that may change. */
class Player {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private at = 0;

  constructor(
    private readonly texts: readonly string[],
    private readonly on: { text(text: string): void; end(): void },
    /** Texts per second, queried before each. */
    private readonly pace: () => number,
  ) {}

  start(): void {
    this.next();
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private next(): void {
    if (this.at < this.texts.length) {
      this.on.text(this.texts[this.at++]);
      this.timer = setTimeout(() => this.next(), 1000 / this.pace());
    } else this.on.end();
  }
}

/** Whether all that was sent is still there. */
function isContinued({ readers }: UnderWay, text: string): boolean {
  return [...readers.values()].every(({ sent, byCharacter }) => {
    const words = arrivingWords(text, byCharacter);
    return sent.every(({ word, joined }, i) => word === words[i]?.word && joined === words[i].joined);
  });
}

function singleSpaced(text: string): string {
  return text.trim().replaceAll(/\s+/gu, ' ');
}
