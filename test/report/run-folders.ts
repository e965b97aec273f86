import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRun } from '../../src/run/index.js';

/** What a synthetic run is like. */
export interface MadeRun {
  readonly strategy: string;
  readonly seed: number;
  /** Default 1. */
  readonly main?: number;
  /** Keys laid over the configuration, by their dotted names. */
  readonly set?: Readonly<Record<string, unknown>>;
  /** Best validation performance. Default −1. */
  readonly performance?: number;
  /** Default minus the validation performance. */
  readonly testLoss?: number;
  /** What its time is multiplied by. Default 1. */
  readonly pace?: number;
  readonly state?: 'finished' | 'running' | 'interrupted' | 'failed';
  /** Default 4. */
  readonly episodes?: number;
}

/** A forecast that has been evaluated: RankIC of each day, and what follows from it. */
export interface MadeForecast extends MadeRun {
  readonly daily: readonly number[];
}

/** A translation that has been evaluated with some waits and under other policies. */
export interface MadeTranslation extends MadeRun {
  readonly waits?: readonly {
    readonly k: number;
    readonly outputs: readonly string[];
    readonly bleu: number;
    /** Default the best. */
    readonly checkpoint?: string;
  }[];
  readonly policies?: readonly MadePolicy[];
}

export interface MadePolicy {
  readonly policy: string;
  readonly bleu: number;
  readonly AL: number;
  readonly models?: readonly string[];
  readonly earlyEnd?: 'allow' | 'block';
}

export const REFERENCES = [
  'the cat sits on the mat in the house',
  'a dog runs over the green field today',
  'we have seen two birds in the old tree',
  'the man reads a long book by the sea',
];

/** A run of a forecast as `tcts train` leaves it. */
export function makeForecastRun(folder: string, made: MadeRun): string {
  const { main = 1 } = made;
  return makeRun(folder, made, {
    problem: {
      kind: 'forecast',
      data: { format: 'qlib', path: 'data/cn_data', market: 'csi300' },
      tasks: 3,
      main,
      model: { name: 'gru', hidden: 32 },
    },
    tasks: ['day-1', 'day-2', 'day-3'],
  });
}

export function makeForecast(folder: string, made: MadeForecast): string {
  makeForecastRun(folder, made);
  const evaluation = join(folder, 'evaluation', 'test');
  mkdirSync(evaluation, { recursive: true });
  const { daily } = made;
  const RankIC = daily.reduce((sum, value) => sum + value, 0) / daily.length;
  const risk = { annualReturn: RankIC, informationRatio: 1, maxDrawdown: -0.1 };
  const scores = { IC: RankIC, ICIR: 0.5, RankIC, RankICIR: 0.6, MSE: 0.02, zMSE: 2 - 2 * RankIC, days: daily.length };
  writeJson(join(evaluation, 'scores.json'), {
    split: 'test',
    main: made.main ?? 1,
    samples: 10 * daily.length,
    scores,
    quintiles: [0.002, 0.001, 0, -0.001, -0.002],
    backtest: {
      delay: (made.main ?? 1) - 1,
      executable: made.main !== undefined && made.main > 1,
      price: made.main === 2 ? 'open' : 'close',
      settings: { top: 50, drop: 5, longShort: false },
      benchmark: 'SH000300',
      portfolio: risk,
      market: risk,
      excess: risk,
      excessAfterCosts: risk,
      turnover: 0.19,
    },
  });
  const rows = (cells: (value: number) => readonly number[]) =>
    daily.map((value, d) => [dateOf(d), ...cells(value)].join(','));
  write(join(evaluation, 'daily.csv'), ['date,IC,RankIC,zMSE', ...rows((value) => [value, value, 2 - 2 * value])]);
  write(join(evaluation, 'backtest.csv'), [
    'date,value,return,cost,turnover,benchmark',
    ...rows((value) => [1e8, value / 50, 0.0001, 0.2, 0.0005]),
  ]);
  return folder;
}

/** A run of a translation as `tcts train` and `tcts evaluate` leave it. */
export function makeTranslation(folder: string, made: MadeTranslation): string {
  const { main = 3 } = made;
  makeRun(folder, made, {
    problem: {
      kind: 'translation',
      data: { from: 'corpus', folder: 'corpora/multi30k' },
      waits: 5,
      main,
      model: { preset: 'small' },
    },
    tasks: ['wait-1', 'wait-2', 'wait-3', 'wait-4', 'wait-5'],
  });
  const { waits = [], policies = [] } = made;
  for (const { k, outputs, bleu, checkpoint = 'best' } of waits) {
    const evaluation = join(folder, 'evaluation', `test-wait-${k}-beam-1`);
    mkdirSync(evaluation, { recursive: true });
    write(join(evaluation, 'output.txt'), outputs);
    write(
      join(evaluation, 'reference.txt'),
      outputs.map((_, i) => REFERENCES[i % REFERENCES.length]),
    );
    writeTranslationScores(evaluation, { k, sentences: outputs.length, bleu, AL: k, checkpoint });
  }
  for (const [i, { policy, ...measured }] of policies.entries()) {
    const evaluation = join(folder, 'evaluation', `test-policy-${i}`);
    mkdirSync(evaluation, { recursive: true });
    writeTranslationScores(evaluation, { k: policy === 'wait-k:full' ? 'full' : null, policy, ...measured });
  }
  return folder;
}

function writeTranslationScores(
  evaluation: string,
  { bleu, AL, ...how }: { k: number | 'full' | null; bleu: number; AL: number; [key: string]: unknown },
): void {
  const latency = { AP: 0.5 + 0.05 * AL, AL, LAAL: AL, DAL: AL + 1 };
  writeJson(join(evaluation, 'scores.json'), {
    sentences: 4,
    bleu,
    sacrebleu: bleu,
    signature: 'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0+tcts',
    chrf: 50,
    chrfSignature: '',
    lengthRatio: 1,
    endedEarly: 0,
    latency: { stacl: latency, simuleval: latency },
    speed: 10,
    folder: evaluation,
    split: 'test',
    beam: 1,
    earlyEnd: 'allow',
    step: 1,
    ...how,
  });
}

/** A run of a synthetic problem. */
export function makeOtherRun(folder: string, made: MadeRun): string {
  return makeRun(folder, made, { problem: { kind: 'known-answer' }, tasks: ['main', 'helpful', 'harmful'] });
}

function makeRun(
  folder: string,
  {
    strategy,
    seed,
    set = {},
    performance = -1,
    testLoss = -performance,
    pace = 1,
    state = 'finished',
    episodes = 4,
  }: MadeRun,
  { problem, tasks }: { problem: Record<string, unknown>; tasks: readonly string[] },
): string {
  const config: Record<string, unknown> = {
    seed,
    out: 'runs',
    name: `any-${seed}`,
    threads: 1,
    workers: 'auto',
    problem,
    strategy: { name: strategy, ...(strategy === 'learned' ? { without: [] } : {}) },
    training: { episodes, steps: 10 },
  };
  for (const [key, value] of Object.entries(set)) assign(config, key.split('.'), value);
  const command = ['node', 'main.js', 'train', 'a.yaml', '--set', `seed=${seed}`];
  const { info, lock } = createRun(folder, { config, seed, command });
  lock.release();
  writeJson(join(folder, 'run.json'), { ...info, state });

  const metrics: object[] = [];
  const timings: object[] = [];
  const log = (step: number, record: object, seconds: number) => {
    metrics.push({ step, ...record });
    timings.push({ step, time: '2026-01-01T00:00:00.000Z', seconds: pace * seconds });
  };
  for (let e = 1; e <= episodes; e++) {
    // An update takes half a second, a validation ten seconds.
    const start = (e - 1) * 15;
    log(10 * e - 5, { loss: 3 / e }, start + 2.5);
    log(10 * e, { loss: 3 / e }, start + 5);
    const chosen = strategy === 'best-fixed' ? e - 1 : 0;
    const distribution = Object.fromEntries(
      tasks.map((task, i) => [task, strategy === 'mtl' ? 1 / tasks.length : Number(i === chosen)]),
    );
    const record = { episode: e, performance: performance - 1 / e, reward: 0.1 / e, loss: 3 / e, distribution };
    log(10 * e, { ...record, entropy: 0, gradNorm: null }, start + 15);
  }
  write(
    join(folder, 'metrics.jsonl'),
    metrics.map((line) => JSON.stringify(line)),
  );
  write(
    join(folder, 'timings.jsonl'),
    timings.map((line) => JSON.stringify(line)),
  );
  if (state === 'finished') {
    const best = { performance, update: 10 * Math.min(3, episodes) };
    writeJson(join(folder, 'result.json'), { updates: 10 * episodes, best, test: { loss: testLoss } });
  }
  return folder;
}

function assign(target: Record<string, unknown>, [key, ...rest]: string[], value: unknown): void {
  if (rest.length === 0) target[key] = value;
  else assign(target[key] as Record<string, unknown>, rest, value);
}

function dateOf(day: number): string {
  return new Date(Date.UTC(2016, 0, 4 + day)).toISOString().slice(0, 10);
}

function write(file: string, lines: readonly string[]): void {
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
}

function writeJson(file: string, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value)}\n`);
}
