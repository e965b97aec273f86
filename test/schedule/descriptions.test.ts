import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { trainingRun } from '../../src/cli/training-run.js';
import { trainConfigSchema } from '../../src/problems/index.js';
import { loadConfig } from '../../src/run/index.js';
import { describeStrategy, registerStrategy, strategies, strategyNamed } from '../../src/schedule/index.js';
import { drawnFrom } from '../../src/schedule/strategies/distribution.js';

const docs = readFileSync(new URL('../../docs/strategies.md', import.meta.url), 'utf8');
const home = mkdtempSync(join(tmpdir(), 'tcts-strategies-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** `self-paced` under the heading of its own; `greedy` and `soft` share one. */
const headingOf = (name: string) => (name === 'greedy' || name === 'soft' ? 'greedy-and-soft' : name);

test('the table of docs/strategies.md is that of the descriptions', () => {
  const rows = strategies.map(({ name, summary, learns = '', sees = '', extraCost = '', knobs = [] }) => {
    const cells = [`[\`${name}\`](#${headingOf(name)})`, summary.replace(/\.$/, ''), learns, sees, extraCost];
    return `| ${[...cells, knobs.map((knob) => `\`${knob}\``).join(', ')].join(' | ')} |`.replaceAll('|  |', '| |');
  });
  const table = [
    '| name | what it does | learns | sees of a sample | extra cost | worth tuning |',
    '|---|---|---|---|---|---|',
    ...rows,
  ];
  expect(docs).toContain(table.join('\n').replaceAll('|  |', '| |'));
});

describe.each(strategies.map((strategy) => [strategy.name, strategy] as const))('%s', (name, description) => {
  test('has a section in docs/strategies.md, and knobs that are options', () => {
    expect(docs).toMatch(new RegExp(`^## ${headingOf(name).replaceAll('-', '[- ]')}$`, 'm'));
    for (const knob of description.knobs ?? []) expect(Object.keys(description.options.shape)).toContain(knob);
    expect(description.options.safeParse({}).success).toBe(true);
  });
});

test('no file but its own has the name of a strategy as a literal', () => {
  const root = new URL('../../src/', import.meta.url).pathname;
  const names = strategies.map(({ name }) => name).filter((name) => name !== 'window' && name !== 'soft');
  const literal = new RegExp(`'(${names.join('|')})'`);
  const folders = ['schedule', 'sweep', 'report', 'run', 'serve', 'problems', '../page'];
  const files = folders
    .flatMap((folder) => readdirSync(root + folder, { recursive: true }).map((file) => `${folder}/${file}`))
    .filter((file) => file.endsWith('.ts') && !file.includes('/strategies/'));
  expect(files.length).toBeGreaterThan(40);
  const found = files.flatMap((file) =>
    readFileSync(root + file, 'utf8')
      .split('\n')
      .filter((line) => literal.test(line) && !/^\s*(\*|\/\/|\/\*\*)/.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );
  // The problem's abilities are called as the strategies that need them, and an example of a sweep is a configuration.
  expect(found.filter((line) => !/type Ability|\.meta\(/.test(line))).toEqual([]);
});

/** Changes task at every update: the main one and the next in turn. */
const alternating = describeStrategy({
  name: 'alternating',
  summary: 'The main task and its neighbours in turn.',
  title: 'turns',
  knobs: ['period'],
  options: z.strictObject({ period: z.int().min(1).default(2).describe('Tasks in a turn.') }),
  create({ period }, problem, { random }) {
    const K = problem.tasks.length;
    return drawnFrom('alternating', problem, random, ({ update }) => {
      const task = (problem.main + (update % period)) % K;
      return problem.tasks.map((_, i) => (i === task ? 1 : 0));
    });
  },
});

test('a registered strategy is trained through the configuration like a built-in one', async () => {
  const demo = new URL('../../configs/demo.yaml', import.meta.url).pathname;
  const set = ['strategy.name=alternating', 'strategy.period=3', 'training.episodes=2', 'training.steps=3'];
  const config = (...more: string[]) => loadConfig(trainConfigSchema, demo, { set: [...set, ...more] });
  // It is unknown until it is registered, even after configurations have been read.
  expect(() => config()).toThrow(/strategy\.name: expected .*"mtl".*, found "alternating"/);
  registerStrategy(alternating);
  expect(() => registerStrategy(alternating)).toThrow('there is already a strategy alternating');
  expect(strategyNamed('alternating')?.title).toBe('turns');
  expect(() => config('strategy.period=0')).toThrow('strategy.period: expected an integer of at least 1, found 0');
  expect(config().strategy).toEqual({ name: 'alternating', period: 3 });

  const folder = join(home, 'alternating');
  const { result, tasks } = await trainingRun(config(), { folder, quiet: true });
  expect(result?.updates).toBe(6);
  expect(existsSync(join(folder, 'config.yaml'))).toBe(true);
  // Updates 1 to 3 train the tasks main + 1, main + 2 and main: a third of the samples each.
  const lines = readFileSync(join(folder, 'metrics.jsonl'), 'utf8').trim().split('\n');
  const episode = lines.map((line) => JSON.parse(line)).find((line) => line.episode === 1);
  const main = tasks.indexOf('main');
  for (const [i, task] of tasks.entries()) {
    const expected = [0, 1, 2].some((turn) => (main + turn) % tasks.length === i) ? 1 / 3 : 0;
    expect(episode.distribution[task]).toBeCloseTo(expected, 12);
  }
});
