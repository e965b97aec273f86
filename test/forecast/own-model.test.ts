import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { z } from 'zod';
import { dataFormat, Notes } from '../../src/forecast/formats/format.js';
import { formats } from '../../src/forecast/formats/index.js';
import { syntheticMarket } from '../../src/forecast/formats/synthetic.js';
import { models } from '../../src/forecast/models/index.js';
import { networkModel } from '../../src/forecast/models/model.js';
import { linear } from '../../src/nn/index.js';
import { relu } from '../../src/tensor/index.js';

/** A model of one's own: a description, and a line in the list. */
models.push(
  networkModel({
    schema: z.strictObject({
      name: z.literal('perceptron').describe('One hidden layer.'),
      units: z.int().min(1).default(7).describe('Its width.'),
    }),
    title: 'Perceptron',
    layout: 'flat',
    trunk: (p, { x }, { units }) => relu(linear(p.under('hidden'), x, units)),
  }),
);

/** A data format of one's own: the number of stocks, in a file. */
formats.push(
  dataFormat({
    schema: z.strictObject({
      format: z.literal('stocks').describe('A file with a number.'),
      path: z.string().describe('The file.'),
      days: z.int().default(160).describe('Trading days.'),
    }),
    title: 'a number of stocks',
    recognises: (path) => path.endsWith('.stocks'),
    read({ path, days }) {
      const panel = syntheticMarket({ stocks: Number(readFileSync(path, 'utf8')), days, strength: 0.6 });
      return { panel, cleaned: panel, notes: new Notes() };
    },
  }),
);

const folder = mkdtempSync(join(tmpdir(), 'tcts-own-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('a model and a format that are added to the lists train, evaluate and forecast from the command line', async () => {
  // The command line reads the lists when it first needs them.
  const { program } = await import('../../src/cli/program.js');
  const run = async (...args: string[]): Promise<string> => {
    const out: string[] = [];
    const { write } = process.stdout;
    process.stdout.write = ((text: string) => out.push(text) > 0) as typeof write;
    try {
      await program().parseAsync(args, { from: 'user' });
    } finally {
      process.stdout.write = write;
    }
    return out.join('');
  };
  const prices = join(folder, 'market.stocks');
  writeFileSync(prices, '20');
  const config = join(folder, 'own.yaml');
  writeFileSync(
    config,
    JSON.stringify({
      out: folder,
      problem: {
        kind: 'forecast',
        data: { format: 'stocks', path: prices },
        split: {
          train: ['2015-01-20', '2015-04-30'],
          validation: ['2015-05-01', '2015-06-15'],
          test: ['2015-06-16', '2015-07-31'],
        },
        features: { window: 6 },
        model: { name: 'perceptron' },
        batch: { size: 50 },
        learningRate: 0.01,
      },
      strategy: { name: 'mtl' },
      training: { episodes: 2, steps: 3 },
      threads: 1,
    }),
  );
  await run('train', config, '--quiet');
  const saved = readFileSync(join(folder, 'own', 'config.yaml'), 'utf8');
  expect(saved).toMatch(/name: perceptron\n\s+units: 7/);
  expect(saved).toMatch(/days: 160/);
  const evaluation = JSON.parse(await run('evaluate', join(folder, 'own'), '--json'));
  expect(evaluation.scores.RankIC).toBeGreaterThan(-1);
  writeFileSync(join(folder, 'other.stocks'), '10');
  const out = join(folder, 'predictions.csv');
  await run('forecast', join(folder, 'own'), '--data', join(folder, 'other.stocks'), '--out', out);
  expect(readFileSync(out, 'utf8').trim().split('\n')).toHaveLength(11);

  // The reference, the schema for editors and the labels of reports know them as well.
  const { jsonSchema, referenceYaml } = await import('../../src/run/index.js');
  const { trainConfigSchema } = await import('../../src/problems/index.js');
  expect(referenceYaml(trainConfigSchema)).toContain('One hidden layer.');
  expect(JSON.stringify(jsonSchema(trainConfigSchema))).toContain('A file with a number.');
  const { labelsFor } = await import('../../src/report/labels.js');
  const settings = ['gru', 'perceptron'].map((name) => ({
    strategy: 'fixed',
    keys: new Map<string, unknown>([['problem.model.name', name]]),
  }));
  expect(labelsFor('forecast', settings)).toEqual(['GRU', 'Perceptron']);
});
