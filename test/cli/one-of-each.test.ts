import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { startServer } from '../../src/serve/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTctsBy } from './train-process.js';

/** A strategy, a policy, a forecasting model, a data format and a kind of problem, in one file and at run time. */
const module = fileURLToPath(new URL('one-of-each.mjs', import.meta.url));
const options = `--import=${pathToFileURL(module).href}`;
const root = fileURLToPath(new URL('../..', import.meta.url));

/** `tcts` with the module loaded, in processes that it starts as well. */
const tcts = (folder: string, ...args: string[]) =>
  startTctsBy(['env', `NODE_OPTIONS=${options}`], folder, ...args).ended;

/** What a script says that imports the package. */
const script = (text: string): string =>
  execFileSync(process.execPath, [options, '--input-type=module', '--eval', text], { cwd: root, encoding: 'utf8' });

describe('what is added at run time', () => {
  it('is in the reference, the JSON Schema and the help', { timeout: 60_000 }, async () => {
    const [reference, schema] = JSON.parse(
      script(`import { run, trainConfigSchema } from 'tcts';
const both = [run.referenceYaml(trainConfigSchema), JSON.stringify(run.jsonSchema(trainConfigSchema))];
console.log(JSON.stringify(both));`),
    ) as [string, string];
    // Summaries of strategy, model and format, and defaults of their options.
    for (const sentence of ['The tasks in turn.', 'One hidden layer.', 'A file with the number of stocks.']) {
      expect(reference).toContain(sentence);
      expect(schema).toContain(sentence);
    }
    expect(reference).toMatch(/# +period: 2\n/);
    expect(reference).toMatch(/# +units: 7\n/);
    const { stdout: help } = await tcts(root, 'translate', '--help');
    expect(help).toContain('n-for-one:n=2                         read n tokens for each that is written');
  });

  it('trains, is swept, estimated and reported: a problem and a strategy', { timeout: 120_000 }, async () => {
    const folder = temporaryFolder();
    const training = '{episodes: 4, steps: 3}';
    writeFileSync(join(folder, 'own.yaml'), `problem: {kind: module, module: ${module}}\ntraining: ${training}\n`);
    const grid = 'base: own.yaml\ngroups: [{name: own, grid: {strategy.name: [mtl, fixed, turns]}}]\n';
    writeFileSync(join(folder, 'grid.yaml'), grid);
    const swept = await tcts(folder, 'sweep', 'grid.yaml', '--json', '--quiet', '--cores', '2');
    expect(swept).toMatchObject({ code: 0, stderr: '' });
    const { runs } = JSON.parse(swept.stdout) as { runs: { name: string; state: string }[] };
    expect(runs.map(({ state }) => state)).toEqual(['done', 'done', 'done']);
    const saved = readFileSync(join(folder, 'runs/grid/own,strategy=turns,seed=1/config.yaml'), 'utf8');
    expect(saved).toMatch(/teachers: one\n/);
    expect(saved).toMatch(/name: turns\n {2}period: 2\n/);

    // A trial for the strategies that cost nothing, and one for that which says that it does.
    const estimated = script(`import { sweep, trainConfigSchema } from 'tcts';
import problem from ${JSON.stringify(module)};
const config = (name) => ({ problem: { kind: problem.schema.shape.kind.value }, strategy: { name }, training: ${training} });
const runs = ['mtl', 'fixed', 'turns'].map((name) => ({ job: { name, cores: 1 }, config: config(name) }));
const tried = [];
const run = async (job) => { tried.push(job.name); return { state: 'done' }; };
await sweep.estimate(runs, { cores: 1, run });
console.log(tried.join(' '));`);
    expect(estimated).toBe('mtl turns\n');

    expect(await tcts(folder, 'report', 'runs/grid')).toMatchObject({ code: 0, stderr: '' });
    const report = readFileSync(join(folder, 'runs/grid/report/report.md'), 'utf8');
    expect(report).toContain('| taking turns |');
    expect(report).toContain('one-of-each: the runs do not record the size of the data.');
    // Its validation is a loss, as that of a built-in problem: no performance with the sign changed.
    expect(report).toMatch(
      /\| own,strategy=turns,seed=1 \| one-of-each \| taking turns \| – \| 1 \| 12 \| loss 0\.\d{4} \|/,
    );
  });

  it('trains, forecasts and is reported: a model and a format', { timeout: 120_000 }, async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'market.stocks'), '20');
    writeFileSync(
      join(folder, 'stocks.yaml'),
      `problem:
  kind: forecast
  data: {format: stocks, path: market.stocks}
  split: {train: [2015-01-20, 2015-04-30], validation: [2015-05-01, 2015-06-15], test: [2015-06-16, 2015-07-31]}
  features: {window: 6}
  model: {name: perceptron}
strategy: {name: fixed}
training: {episodes: 2, steps: 3}
`,
    );
    expect(await tcts(folder, 'train', 'stocks.yaml', '--quiet')).toMatchObject({ code: 0, stderr: '' });
    const saved = readFileSync(join(folder, 'runs/stocks/config.yaml'), 'utf8');
    expect(saved).toMatch(/name: perceptron\n\s+units: 7/);
    expect(saved).toMatch(/days: 160/);
    const evaluated = await tcts(folder, 'evaluate', 'runs/stocks', '--json');
    expect(evaluated).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(evaluated.stdout).scores.RankIC).toBeGreaterThan(-1);
    expect(await tcts(folder, 'report', 'runs')).toMatchObject({ code: 0, stderr: '' });
    const report = readFileSync(join(folder, 'runs/report/report.md'), 'utf8');
    expect(report).toMatch(/market\.stocks: 20 stocks on 160 days; .* Methods: Perceptron\./);
    const labels = script(`import { labelsFor } from ${JSON.stringify(join(root, 'dist/report/labels.js'))};
const settings = ['gru', 'perceptron'].map((name) => ({ strategy: 'fixed', keys: new Map([['problem.model.name', name]]) }));
console.log(labelsFor('forecast', settings).join(' '));`);
    expect(labels).toBe('GRU Perceptron\n');
    // The name of a file tells its format.
    writeFileSync(join(folder, 'other.stocks'), '10');
    const forecast = await tcts(folder, 'forecast', 'runs/stocks', '--data', 'other.stocks', '--out', 'next.csv');
    expect(forecast).toMatchObject({ code: 0 });
    expect(readFileSync(join(folder, 'next.csv'), 'utf8').trim().split('\n')).toHaveLength(11);
  });

  it('is on the page: the policy in its menu, the problem among the runs', { timeout: 60_000 }, async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'own.yaml'), `problem: {kind: module, module: ${module}}\nstrategy: {name: turns}\n`);
    const short = ['--set', 'training.episodes=2', '--set', 'training.steps=2', '--quiet'];
    expect(await tcts(folder, 'train', 'own.yaml', ...short)).toMatchObject({ code: 0, stderr: '' });
    const server = await startServer({
      folder: join(folder, 'runs'),
      port: 0,
      builtIn: { folder: join(root, 'models/verb-final'), about: 'made up' },
      modules: [pathToFileURL(module).href],
    });
    try {
      const get = async (path: string) => (await fetch(new URL(path, server.url))).json();
      const offered = (await get('/api/translation')) as { policies: object[]; runs: { policies: string[] }[] };
      expect(offered.policies.at(-1)).toEqual({
        name: 'n-for-one',
        title: 'n for one',
        help: 'read n tokens for each that is written',
        knobs: [{ name: 'n', label: 'n', min: 1, max: 4, step: 1, start: 3 }],
      });
      expect(offered.runs[0].policies).toContain('n-for-one');
      const [shown] = (await get('/api/runs')) as { kind: string; strategy: string; state: string }[];
      expect(shown).toMatchObject({ kind: 'one-of-each', strategy: 'turns', state: 'finished' });
      expect(shown).toMatchObject({ validation: { name: 'validation loss', better: 'lower' } });
    } finally {
      await server.close();
    }
  });
});
