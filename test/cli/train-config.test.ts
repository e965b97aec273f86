import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { trainConfigSchema } from '../../src/problems/index.js';
import { jsonSchema, loadConfig, referenceYaml } from '../../src/run/index.js';

const TITLE = `Every key of a training configuration, with its default. A configuration contains only what differs;
it may begin with "extends: other.yaml". The keys after "Or:" belong to another choice of the key above.`.replaceAll(
  '\n',
  ' ',
);

const configs = fileURLToPath(new URL('../../configs/', import.meta.url));

// After a change of the schema: npx vitest run test/cli/train-config.test.ts -u
test('the reference and the schema for editors are those of the code', async () => {
  await expect(referenceYaml(trainConfigSchema, TITLE)).toMatchFileSnapshot(`${configs}reference.yaml`);
  const schema = `${JSON.stringify(jsonSchema(trainConfigSchema), null, 2)}\n`;
  await expect(schema).toMatchFileSnapshot(`${configs}schema.json`);
});

test('every configuration is valid, and the reference says nothing but defaults', () => {
  const names = ['', 'known/'].flatMap((folder) =>
    readdirSync(configs + folder)
      .filter((name) => name.endsWith('.yaml'))
      .map((name) => folder + name),
  );
  for (const name of names) expect(() => loadConfig(trainConfigSchema, configs + name), name).not.toThrow();
  const shortest = { problem: { kind: 'known-answer' }, strategy: { name: 'learned' } };
  expect(loadConfig(trainConfigSchema, `${configs}reference.yaml`)).toEqual(trainConfigSchema.parse(shortest));
});

test('the configuration of the CSI300 has what the paper says of its experiment', () => {
  // Section 4.3: a GRU of two layers of 32 over 60 days; a scheduler with one hidden layer of 32 and ReLU; the split.
  const { problem, strategy } = loadConfig(trainConfigSchema, `${configs}csi300.yaml`);
  expect(strategy).toMatchObject({ name: 'learned', hidden: [32], activation: 'relu' });
  expect(problem).toMatchObject({
    model: { name: 'gru', hidden: 32, layers: 2 },
    features: { kind: 'ohlcv', window: 60 },
    labels: { kind: 'daily', shift: 0 },
    split: {
      train: ['2008-01-01', '2013-12-31'],
      validation: ['2014-01-01', '2015-12-31'],
      test: ['2016-01-01', '2020-08-01'],
    },
  });
});

test('what the learned scheduler is shipped with gives it 40 rewards at least', () => {
  const shipped = readdirSync(configs)
    .filter((name) => name.endsWith('.yaml') && name !== 'reference.yaml')
    .map((name) => ({ name, ...loadConfig(trainConfigSchema, configs + name) }))
    .filter(({ strategy }) => strategy.name === 'learned');
  expect(shipped.map(({ name }) => name)).toEqual(expect.arrayContaining(['demo.yaml', 'multi30k.yaml', 'toy.yaml']));
  for (const { name, training } of shipped) expect(training.episodes, name).toBeGreaterThanOrEqual(40);
});

test('every strategy is one assignment away', () => {
  const config = (...set: string[]) => loadConfig(trainConfigSchema, `${configs}demo.yaml`, { set });
  expect(config().strategy).toMatchObject({ name: 'learned', preset: 'stable', hidden: [32], without: [] });
  expect(config('strategy.name=mtl').strategy).toEqual({ name: 'mtl' });
  expect(config('strategy.name=window', 'strategy.around=off-60').strategy).toEqual({
    name: 'window',
    around: 'off-60',
    radius: 2,
  });
});

test('mistakes are told with their place', () => {
  const config = (...set: string[]) => loadConfig(trainConfigSchema, `${configs}demo.yaml`, { set });
  expect(() => config('strategy.name=learnt')).toThrow(/strategy\.name: .*"learned"/);
  expect(() => config('strategy.radius=1')).toThrow(/strategy\.radius/);
  expect(() => config('training.steps=0')).toThrow(/training\.steps: .*at least 1/);
  expect(() => config('problem.kind=other')).toThrow(/problem\.kind: .*"known-answer"/);
});

test('a longest sentence beyond all memory is refused before anything is made', () => {
  for (const name of ['toy', 'monotonic']) {
    const config = () =>
      loadConfig(trainConfigSchema, `${configs}${name}.yaml`, { set: ['problem.model.maxPositions=1e9'] });
    expect(config).toThrow('problem.model.maxPositions: expected an integer from 2 to 16384, found 1000000000');
  }
});
