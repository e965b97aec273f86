import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Random } from 'tcts';
import { transientSession } from 'tcts/run';
import { createStrategy, strategySchema, train, trainee } from 'tcts/schedule';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOURS, weatherProblem } from '../examples/weather.js';
import { readWeather, samplesAt, type Weather } from '../examples/weather-data.js';
import { unzipped } from './series/zip.js';
import { describeWithShared, shared } from './shared.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const execute = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'tcts-weather-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const STATUS = { update: 3, updates: 12, performance: -1, meanPerformance: -1 };
/** Those that need no known answer. */
const STRATEGIES = strategySchema.options.map(({ shape }) => shape.name.value).filter((name) => name !== 'oracle');
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
beforeAll(() => {
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

describeWithShared('the weather example on real data', () => {
  it('prints a table, and the same one again from its run folders', async () => {
    const csv = unzipped(shared('data/longterm_ts/weather.zip'), 'weather/weather.csv').toString('latin1');
    const file = fileOf('weather.csv', csv.split('\n').slice(0, cycleLines.length + 1));
    await execute('npx', ['tsc', '-p', 'examples'], { cwd: root });
    const script = join(root, 'examples/dist/weather-run.js');
    const small = ['--seeds', '1,2', '--episodes', '2', '--steps', '5', '--out', join(folder, 'runs')];
    const { stdout } = await execute('node', [script, file, ...small]);
    const figure = String.raw`\s+-?\d+\.\d{4} ± \d+\.\d{4}`;
    const lines = stdout.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^strategy\s+validation\s+mse\s+skill$/);
    expect(lines.slice(1)).toEqual(
      ['fixed', 'mtl', 'learned'].map((name) => expect.stringMatching(new RegExp(`^${name}(${figure}){3}$`))),
    );
    const log = () => readFileSync(join(folder, 'runs/learned-2/metrics.jsonl'), 'utf8');
    const logged = log();
    expect((await execute('node', [script, file, ...small])).stdout).toBe(stdout);
    expect(log()).toBe(logged);
  });
});

function bytes({ buffer, byteOffset, byteLength }: Float32Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
