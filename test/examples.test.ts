import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Random } from 'tcts';
import { transientSession } from 'tcts/run';
import { createStrategy, strategies, strategySchema, train, trainee } from 'tcts/schedule';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOURS, weatherProblem } from '../examples/weather.js';
import { readWeather, samplesAt, type Weather } from '../examples/weather-data.js';
import { tcts } from './cli/train-process.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const execute = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'tcts-weather-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const STATUS = { update: 3, updates: 12, performance: -1, meanPerformance: -1 };
/** Those that need no known answer. */
const STRATEGIES = strategies.map(({ name }) => name).filter((name) => name !== 'oracle');
const HEADER = 'date,p (mbar),T (degC)';

/** 50 days, the shortest file with all parts, of a temperature that goes up and down by 5 °C every 20 hours. */
const DAY = 144;
const temperature = (row: number): number => 5 * Math.sin((2 * Math.PI * row) / 120);
const cycleLines = Array.from({ length: 50 * DAY }, (_, row) => `day,${1000 + (row % 7)},${temperature(row)}`);

function fileOf(name: string, lines: readonly string[]): string {
  const path = join(folder, name);
  writeFileSync(path, `${lines.join('\n')}\n`, 'latin1');
  return path;
}

let data: Weather;
beforeAll(async () => {
  await execute('npx', ['tsc', '-p', 'examples'], { cwd: root });
  data = readWeather(fileOf('cycle.csv', [HEADER, ...cycleLines]), HOURS);
});

describe('the weather data', () => {
  it('measures changes in units of their root mean square', () => {
    // sin(a + δ) − sin(a) = 2 sin(δ/2) cos(a + δ/2): over whole periods its root mean square is √2·|sin(δ/2)|.
    for (const [k, hours] of [1, 3, 6, 12, 24].entries()) {
      expect(data.scales[k] / (5 * Math.SQRT2 * Math.abs(Math.sin((Math.PI * hours) / 20)))).toBeCloseTo(1, 1);
      expect(data.labels[500][k] * data.scales[k]).toBeCloseTo(temperature(500 + 6 * hours) - temperature(500), 4);
    }
  });

  it('ends each window with the row that it is named by, and steps by the hour', () => {
    const { x } = samplesAt(data, Int32Array.of(500, 600));
    const [T, B, D] = x.shape;
    const at = (t: number, i: number) => [...x.data.subarray((t * B + i) * D, (t * B + i + 1) * D)];
    expect(at(T - 1, 0)).toEqual([...data.rows[500]]);
    expect(at(T - 2, 1)).toEqual([...data.rows[594]]);
  });

  it.each([
    ['train', 0, 35],
    ['validation', 35, 40],
    ['test', 40, 50],
  ] as const)('takes the samples of the %s part from its own days, but for the scale', (part, begin, end) => {
    const own = (row: number) => row < 35 * DAY || (row >= begin * DAY && row < end * DAY);
    const changed = cycleLines.map((line, row) => (own(row) ? line : 'day,900,40'));
    const other = readWeather(fileOf('changed.csv', [HEADER, ...changed]), HOURS);
    for (const name of ['train', 'validation', 'test'] as const) {
      const same = name === part || name === 'train';
      const [before, after] = [data, other].map((weather) => samplesAt(weather, weather.splits[name]));
      expect(Buffer.compare(bytes(before.x.data), bytes(after.x.data)) === 0).toBe(same);
      expect(Buffer.compare(bytes(before.labels.data), bytes(after.labels.data)) === 0).toBe(same);
    }
  });

  it('fills a missing value with the one before', () => {
    const gap = readWeather(fileOf('gap.csv', [HEADER, ...cycleLines.with(100, 'day,-9999,-9999')]), HOURS);
    expect(gap.rows[100]).toEqual(gap.rows[99]);
  });

  it.each([
    ['a text', [HEADER, 'day,1000,warm'], /text.csv:2: T \(degC\): expected a number, found warm/],
    ['a short line', [HEADER, 'day,1000'], /text.csv:2: T \(degC\): expected a number, found the end of the line/],
    ['no temperature', ['date,p (mbar)', 'day,1'], /text.csv:1: expected a column T \(degC\)/],
    ['few rows', [HEADER, ...cycleLines.slice(0, 500)], /text.csv: 500 rows are too few, expected 50 days/],
  ])('refuses %s', (_, lines, message) => {
    expect(() => readWeather(fileOf('text.csv', lines), HOURS)).toThrow(message);
  });
});

describe('the weather problem', () => {
  it('writes the features that are asked for, and no others', async () => {
    const problem = await weatherProblem(data, new Random(1));
    const batch = await problem.nextBatch();
    const size = problem.sizeOf(batch);
    const all = problem.features.map(({ name }) => name);
    for (const groups of [all, ['progress', 'labels'], ['forecasts']]) {
      const width = problem.features.reduce((sum, { name, width }) => sum + (groups.includes(name) ? width : 0), 0);
      const out = new Float32Array(size * width).fill(Number.NaN);
      await problem.writeFeatures(batch, STATUS, groups, out);
      expect(out.every(Number.isFinite)).toBe(true);
      if (groups[0] === 'progress') expect(out[width]).toBe(0.25);
    }
    await problem.close?.();
  });

  it('makes the same update of one task per sample and of a blend that is all on those tasks', async () => {
    const [one, other] = await Promise.all([weatherProblem(data, new Random(1)), weatherProblem(data, new Random(1))]);
    const batch = await one.nextBatch();
    const size = one.sizeOf(batch);
    const K = one.tasks.length;
    const tasks = Int32Array.from({ length: size }, (_, i) => i % K);
    const blend = new Float32Array(size * K);
    for (let i = 0; i < size; i++) blend[i * K + tasks[i]] = 1;
    const loss = await one.train(batch, { tasks, weights: new Float32Array(size).fill(1) });
    expect(await other.trainBlend?.(batch, blend)).toBeCloseTo(loss, 6);
    expect(await other.validate()).toBeCloseTo(await one.validate(), 6);
    await Promise.all([one.close?.(), other.close?.()]);
  });

  it('goes on from a saved state as it would have gone on', async () => {
    const [one, other] = await Promise.all([weatherProblem(data, new Random(1)), weatherProblem(data, new Random(2))]);
    const step = async (problem: typeof one) => {
      const batch = await problem.nextBatch();
      const size = problem.sizeOf(batch);
      return problem.train(batch, { tasks: new Int32Array(size), weights: new Float32Array(size).fill(1) });
    };
    await step(one);
    other.restore(one.capture());
    for (let t = 0; t < 3; t++) expect(await step(other)).toBe(await step(one));
    expect(await other.validate()).toBe(await one.validate());
    await Promise.all([one.close?.(), other.close?.()]);
  });

  it.each(STRATEGIES)('can be trained with %s', async (name) => {
    const problem = await weatherProblem(data, new Random(1));
    const strategy = await createStrategy(strategySchema.parse({ name }), problem, new Random(2));
    const subject = trainee(problem, strategy);
    const session = transientSession(subject, { mode: 'max' });
    await train(subject, session, { episodes: 2, steps: 2 });
    const episodes = session.records.filter((record) => 'performance' in record);
    expect(episodes).toHaveLength(2 * (strategy.passes ?? 1));
    await Promise.all([strategy.close?.(), problem.close?.()]);
  });

  it('learns a cycle', async () => {
    const problem = await weatherProblem(data, new Random(1));
    const strategy = await createStrategy(strategySchema.parse({ name: 'mtl' }), problem, new Random(2));
    const subject = trainee(problem, strategy);
    await train(subject, transientSession(subject, { mode: 'max' }), { episodes: 1, steps: 300 });
    // "As warm as now" is wrong by (5·√2·sin(6π/20))² = 32.7 °C² on average; the window tells the phase.
    const { mse, skill } = (await problem.test?.())!;
    expect(skill).toBeGreaterThan(0.9);
    expect(mse).toBeCloseTo(32.7 * (1 - skill), 0);
    await problem.close?.();
  });
});

describe('the examples', () => {
  const run = async (name: string, ...args: string[]) => {
    const { stdout } = await execute('node', [join(root, `examples/dist/${name}.js`), ...args], { cwd: folder });
    return stdout;
  };
  const column = (text: string, row: RegExp, at: number) =>
    text.split('\n').flatMap((line) => (row.test(line) ? [Number(line.trim().split(/\s+/)[at])] : []));

  it.each(['translator', 'forecaster', 'own-policy', 'own-strategy'])('%s has at most 80 lines', (name) => {
    expect(
      readFileSync(join(root, `examples/${name}.ts`), 'utf8')
        .trimEnd()
        .split('\n').length,
    ).toBeLessThanOrEqual(80);
  });

  it('a translator, and a policy of its own', { timeout: 120_000 }, async () => {
    const text = await run('translator', 'runs/translator');
    // Under wait-1 each word is answered at once, under wait-5 the first four are not.
    expect(text).toMatch(/wait-1\n\s+the → the\n/);
    expect(text).toMatch(/wait-5\n\s+the → \n\s+tired → \n\s+baker → \n\s+quickly → \n\s+a → the\n/);
    const [bleu, lag] = [column(text, /^ +[135] /, 1), column(text, /^ +[135] /, 2)];
    expect(bleu).toEqual(bleu.toSorted((a, b) => a - b));
    expect(bleu[2]).toBeGreaterThan(bleu[0] + 10);
    expect(lag.map(Math.round)).toEqual([1, 3, 5]);

    const own = await run('own-policy', 'runs/translator');
    const best = Math.max(...column(own, /^sure/, 1));
    // To wait only where the model is unsure beats waiting for the same number of words everywhere.
    expect(best).toBeGreaterThan(bleu[1]);
  });

  it('a forecaster on a CSV file', async () => {
    const text = await run('forecaster');
    // A fifth of each move comes back: no forecast can have a correlation above .2 on average.
    const [, rankIC] = /RankIC (0\.\d+) over \d+ days/.exec(text) ?? [];
    expect(Number(rankIC)).toBeGreaterThan(0.1);
    expect(Number(rankIC)).toBeLessThan(0.22);
    expect(text).toMatch(/after the close of 2020-12-31: S\d+(, S\d+){4}\n/);
  });

  it('a strategy of its own', async () => {
    const text = await run('own-strategy');
    const loss = (name: string) => column(text, new RegExp(`^${name} `), 3)[0];
    // It finds the one clean task: better than the noisy main task alone, and than all tasks alike.
    expect(loss('credit')).toBeLessThan(loss('fixed'));
    expect(loss('credit')).toBeLessThan(loss('mtl'));
  });
});

describe('the weather from the command line', () => {
  it('is swept, left alone when it is done, and reported', { timeout: 120_000 }, async () => {
    const small = [
      'seed=1',
      'training.episodes=2',
      'training.steps=5',
      'problem.data=cycle.csv',
      'logging.everySteps=1',
    ];
    const set = small.slice(1).flatMap((one) => ['--set', one]);
    const grid = join(root, 'examples/weather-sweep.yaml');
    const sweep = () => tcts(folder, 'sweep', grid, '--seeds', '1,2', '--cores', '4', '--json', ...set);
    const first = await sweep();
    expect(first).toMatchObject({ code: 0 });
    const { runs } = JSON.parse(first.stdout) as { runs: { name: string; state: string }[] };
    expect(runs.map(({ name }) => name).sort()).toEqual(
      ['fixed', 'learned', 'mtl'].flatMap((name) => [1, 2].map((seed) => `weather,strategy=${name},seed=${seed}`)),
    );
    const log = () =>
      readFileSync(join(folder, 'runs/weather-sweep/weather,strategy=learned,seed=2/metrics.jsonl'), 'utf8');
    const logged = log();
    expect(JSON.parse((await sweep()).stdout).runs.map((run: { state: string }) => run.state)).toEqual(
      Array(6).fill('done'),
    );
    expect(log()).toBe(logged);

    const report = await tcts(folder, 'report', 'runs/weather-sweep');
    expect(report).toMatchObject({ code: 0, stderr: '' });
    expect(report.stdout).toContain('6 finished runs');
    const text = readFileSync(join(folder, 'runs/weather-sweep/report/report.md'), 'utf8');
    expect(text).toContain('cycle.csv');
    for (const name of ['fixed', 'mtl', 'learned']) expect(text).toContain(name);
    expect(text).toContain('skill');
  });
});

function bytes({ buffer, byteOffset, byteLength }: Float32Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
