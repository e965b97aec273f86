import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { InputError } from '../../src/errors.js';
import { keySchema } from '../../src/run/config/key-schema.js';
import { overlay, parseSource } from '../../src/run/config/sources.js';
import {
  ConfigError,
  commonKeys,
  differences,
  jsonSchema,
  loadConfig,
  referenceYaml,
  resolvedYaml,
  runPath,
  section,
} from '../../src/run/index.js';
import { temporaryFolder } from './temporary.js';

const schema = z.strictObject({
  seed: z.int().min(0).default(1).describe('Seed of the run.'),
  name: z.string().optional().describe('Name of the run.'),
  tasks: z.array(z.int().min(1)).min(1).default([1, 2, 3]).describe('The tasks.'),
  threads: z.union([z.literal('auto'), z.int().min(1)]).default('auto'),
  data: section({ folder: z.string().meta({ description: 'Where the data are.', examples: ['data/toy'] }) }),
  optimizer: section({
    learningRate: z.number().positive().default(0.001),
    decay: z.enum(['constant', 'cosine', 'linear']).default('constant'),
  }).describe('How parameters are updated.'),
  strategy: z
    .discriminatedUnion('name', [
      z.strictObject({ name: z.literal('mtl') }).describe('Every task alike.'),
      z.strictObject({
        name: z.literal('learned'),
        hidden: z.int().min(1).default(32),
        entropy: z.number().default(0),
      }),
    ])
    .prefault({ name: 'mtl' }),
});

describe('a configuration file', () => {
  test('gives its values, and defaults for the rest', () => {
    expect(load('data: {folder: here}\noptimizer:\n  decay: cosine\n')).toEqual({
      seed: 1,
      tasks: [1, 2, 3],
      threads: 'auto',
      data: { folder: 'here' },
      optimizer: { learningRate: 0.001, decay: 'cosine' },
      strategy: { name: 'mtl' },
    });
  });

  test('is refused for an unknown key, with the nearest known one', () => {
    expect(problems(`${DATA}optimizer:\n  learningrat: 3\n`)).toEqual([
      'run.yaml:3: optimizer.learningrat: unknown key; did you mean optimizer.learningRate?',
    ]);
    expect(problems(`${DATA}sede: 3\n`)).toEqual(['run.yaml:2: sede: unknown key; did you mean seed?']);
  });

  test('is refused for a known key in the wrong place, with the right place', () => {
    expect(problems(`${DATA}learningRate: 3\n`)).toEqual([
      'run.yaml:2: learningRate: unknown key; did you mean optimizer.learningRate?',
    ]);
  });

  test('is refused for a key that is like no other, with those there are', () => {
    expect(problems(`${DATA}optimizer: {zzz: 1}\n`)).toEqual([
      'run.yaml:2: optimizer.zzz: unknown key; the keys here are learningRate, decay',
    ]);
  });

  test.each([
    ['seed: -1', 'seed: expected an integer of at least 0, found -1'],
    ['seed: 1.5', 'seed: expected an integer of at least 0, found 1.5'],
    ['seed: one', 'seed: expected an integer of at least 0, found "one"'],
    ['seed:', 'seed: expected an integer of at least 0, found null'],
    ['tasks: []', 'tasks: expected a list of at least 1 item in which each item is an integer of at least 1, found []'],
    ['tasks: [1, 0]', 'tasks.1: expected an integer of at least 1, found 0'],
    ['threads: 0', 'threads: expected "auto" or an integer of at least 1, found 0'],
    ['threads: all', 'threads: expected "auto" or an integer of at least 1, found "all"'],
    ['optimizer: 3', 'optimizer: expected a map, found 3'],
    ['optimizer: {learningRate: .inf}', 'optimizer.learningRate: expected a number above 0, found Infinity'],
    ['optimizer: {learningRate: 0}', 'optimizer.learningRate: expected a number above 0, found 0'],
    [
      'optimizer: {decay: cosin}',
      'optimizer.decay: expected "constant", "cosine" or "linear", found "cosin"; did you mean "cosine"?',
    ],
    ['strategy: {name: learn}', 'strategy.name: expected "mtl" or "learned", found "learn"'],
    ['strategy: {name: mtl, hidden: 3}', 'strategy.hidden: unknown key; the keys here are name'],
  ])('is refused for %s', (line, message) => {
    expect(problems(DATA + line)).toEqual([`run.yaml:2: ${message}`]);
  });

  test('is refused for a key that is missing, at the map that should have it', () => {
    expect(problems('seed: 1\ndata: {}\n')).toEqual(['run.yaml:2: data.folder: missing, expected text']);
    expect(problems('seed: 1\n')).toEqual(['run.yaml:1: data.folder: missing, expected text']);
  });

  test('is told all its problems at once, each in a line of its own', () => {
    const error = failure(() => load('seed: -1\nfoo: 1\noptimizer:\n  learningRate: fast\n'));
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).problems.map((problem) => problem.where.key)).toEqual([
      'seed',
      'data.folder',
      'optimizer.learningRate',
      'foo',
    ]);
    expect(error.message.split('\n')).toHaveLength(4);
  });

  test.each([
    ['a: [1, 2', /^run.yaml:\d: not valid YAML: /],
    ['seed: 1\nseed: 2\n', /^run.yaml:2: not valid YAML: Map keys must be unique/],
    ['- 1\n', /^run.yaml:1: expected a map of keys to values/],
    ['seed: !other 1\n', /^run.yaml:1: not valid YAML: Unresolved tag/],
    ['a.b: 1\n', /^run.yaml:1: found "a.b", expected a key without dots/],
    ['__proto__: {seed: 1}\n', /^run.yaml:1: found "__proto__"/],
    ['a: &x [*x]\n', /^run.yaml:1: a.0: the alias does not stand for a complete value/],
    ['a: *nothing\n', /^run.yaml:1: .*alias/i],
  ])('with the text %j is refused', (text, message) => {
    expect(shortened(failure(() => load(text)))).toMatch(message);
  });

  test('may use anchors and aliases', () => {
    expect(load('data: {folder: &here there}\nname: *here\n')).toMatchObject({ name: 'there' });
  });

  test('may use an alias for a map or a list, more than once', () => {
    const { values } = parseSource('a: &x {b: [1, 2]}\nc: *x\nd: [*x, *x]\n', 'any.yaml');
    const x = { b: [1, 2] };
    expect(values).toEqual({ a: x, c: x, d: [x, x] });
  });

  test('that does not exist is refused by name', () => {
    expect(failure(() => loadConfig(schema, 'nowhere.yaml')).message).toMatch(/nowhere.yaml .*does not exist/);
  });

  test('needs a schema that refuses unknown keys: anything else is a mistake of the program', () => {
    const loose = z.strictObject({ data: z.object({ folder: z.string() }) });
    expect(() => loadConfig(loose, write({ 'run.yaml': DATA }))).toThrow(/data must be a z.strictObject/);
  });
});

describe('extends', () => {
  test('lays a file over another, relative to itself, through several files', () => {
    const file = write({
      'run.yaml': 'extends: bases/b.yaml\nseed: 3\n',
      'bases/b.yaml': 'extends: a.yaml\noptimizer: {decay: linear}\nseed: 2\ntasks: [7]\n',
      'bases/a.yaml': `${DATA}optimizer: {learningRate: 0.5, decay: cosine}\ntasks: [1, 2]\n`,
    });
    expect(loadConfig(schema, file)).toMatchObject({
      seed: 3,
      tasks: [7],
      data: { folder: 'here' },
      optimizer: { learningRate: 0.5, decay: 'linear' },
    });
  });

  test('a problem is reported in the file it is in', () => {
    const file = write({ 'run.yaml': 'extends: base.yaml\nseed: x\n', 'base.yaml': `${DATA}\n\ntasks: 3\n` });
    const messages = shortened(failure(() => loadConfig(schema, file))).split('\n');
    expect(messages[0]).toMatch(/^run.yaml:2: seed: /);
    expect(messages[1]).toMatch(/^base.yaml:4: tasks: /);
  });

  test('a circle is refused', () => {
    const file = write({ 'run.yaml': 'extends: a.yaml\n', 'a.yaml': 'seed: 1\nextends: run.yaml\n' });
    expect(shortened(failure(() => loadConfig(schema, file)))).toBe(
      'a.yaml:2: extends: the files extend each other in a circle: run.yaml → a.yaml → run.yaml',
    );
  });

  test('a file that is missing is refused at the line that names it', () => {
    const file = write({ 'run.yaml': 'seed: 1\nextends: other.yaml\n' });
    expect(shortened(failure(() => loadConfig(schema, file)))).toMatch(/^run.yaml:2: extends: .*does not exist/);
  });

  test('another member of a union replaces the whole map, the same one is merged', () => {
    const base = `${DATA}strategy: {name: learned, hidden: 8}\n`;
    const other = write({ 'run.yaml': 'extends: base.yaml\nstrategy: {name: mtl}\n', 'base.yaml': base });
    expect(loadConfig(schema, other).strategy).toEqual({ name: 'mtl' });
    const same = write({ 'run.yaml': 'extends: base.yaml\nstrategy: {entropy: 0.1}\n', 'base.yaml': base });
    expect(loadConfig(schema, same).strategy).toEqual({ name: 'learned', hidden: 8, entropy: 0.1 });
  });

  test('a map that names no member is completed by one that knows all its keys', () => {
    const under = { values: { strategy: { task: 'a' } }, places: new Map() };
    const over = (strategy: object) => ({ values: { strategy }, places: new Map() });
    const union = z.strictObject({
      strategy: z.discriminatedUnion('name', [
        z.strictObject({ name: z.literal('one'), size: z.number() }),
        z.strictObject({ name: z.literal('two'), size: z.number(), task: z.string() }),
        z.strictObject({ name: z.literal('three') }),
      ]),
    });
    const laid = (strategy: object) => overlay(under, over(strategy), keySchema(union)).values.strategy;
    expect(laid({ name: 'two', size: 1 })).toEqual({ task: 'a', name: 'two', size: 1 });
    expect(laid({ name: 'three' })).toEqual({ name: 'three' });
  });
});

describe('--set', () => {
  test('changes keys, with values read as YAML, the last one winning', () => {
    const set = ['optimizer.learningRate=0.25', 'tasks=[4, 5]', 'name=a=b', 'seed=5', 'seed=6'];
    expect(load(DATA, set)).toMatchObject({ seed: 6, tasks: [4, 5], name: 'a=b', optimizer: { learningRate: 0.25 } });
  });

  test('is refused for an unknown key or a wrong value, and names itself', () => {
    expect(problems(DATA, ['optimizer.lerningRate=1'])).toEqual([
      '--set optimizer.lerningRate=1: optimizer.lerningRate: unknown key; did you mean optimizer.learningRate?',
    ]);
    expect(problems(DATA, ['seed=-1'])).toEqual(['--set seed=-1: seed: expected an integer of at least 0, found -1']);
    expect(problems(DATA, ['seed.x=1'])).toEqual([
      '--set seed.x=1: seed: expected an integer of at least 0, found {"x":1}',
    ]);
  });

  test.each(['seed', '=3', 'a..b=3', 'seed=[1', 'seed=1\nname: x'])('%j is refused', (assignment) => {
    expect(() => load(DATA, [assignment])).toThrow(InputError);
  });
});

describe('merging', () => {
  // Small trees with few names, so that keys meet often.
  const leaf = fc.oneof(fc.integer(), fc.constant(null), fc.array(fc.integer(), { maxLength: 2 }));
  const name = fc.constantFrom('a', 'b', 'c');
  const tree = fc.letrec<{ map: Record<string, unknown> }>((tie) => ({
    map: fc.dictionary(name, fc.oneof({ maxDepth: 3 }, leaf, tie('map')), { maxKeys: 3 }),
  })).map;
  const source = (values: Record<string, unknown>, file: string) => parseSource(resolvedYaml(values), file);
  const free = keySchema(z.record(z.string(), z.unknown()));

  test('gives every key the value of the last layer that has it', () => {
    fc.assert(
      fc.property(tree, tree, (under, over) => {
        const merged = overlay(source(under, 'under'), source(over, 'over'), free).values;
        // What `over` says stands, and what it does not speak of is as in `under`.
        expect(merged).toMatchObject(over);
        for (const { key, a, b } of differences(under, merged)) {
          const spoken = key.split('.').some((_, i, parts) => has(over, parts.slice(0, i + 1)));
          expect(spoken, `${key}: ${JSON.stringify(a)} → ${JSON.stringify(b)}`).toBe(true);
        }
      }),
    );
  });

  test('is associative, and an empty layer changes nothing', () => {
    fc.assert(
      fc.property(tree, tree, tree, (a, b, c) => {
        const [x, y, z_] = [source(a, 'a'), source(b, 'b'), source(c, 'c')];
        const left = overlay(overlay(x, y, free), z_, free);
        expect(overlay(source({}, 'a'), x, free).values).toEqual(x.values);
        expect(overlay(x, source({}, 'e'), free).values).toEqual(x.values);
        // A list or value between two maps cuts the lower one off, whichever pair is merged first: not associative there.
        fc.pre(!cuts(a, b, c));
        expect(left.values).toEqual(overlay(x, overlay(y, z_, free), free).values);
      }),
    );
  });

  test('knows for every key which layer it came from', () => {
    fc.assert(
      fc.property(tree, tree, (under, over) => {
        const { values, places } = overlay(source(under, 'under'), source(over, 'over'), free);
        for (const { key, b } of differences({}, values)) {
          const path = key.split('.');
          const place = places.get(key);
          expect(place, key).toBeDefined();
          expect(place!.file).toBe(has(over, path) ? 'over' : 'under');
          expect(b).toEqual(path.reduce<unknown>((at, part) => (at as Record<string, unknown>)[part], values));
        }
      }),
    );
  });

  function has(values: unknown, path: string[]): boolean {
    if (path.length === 0) return true;
    const record = values as Record<string, unknown>;
    return isMap(values) && path[0] in record && has(record[path[0]], path.slice(1));
  }

  function cuts(a: unknown, b: unknown, c: unknown): boolean {
    if (!isMap(a) || !isMap(c)) return false;
    if (!isMap(b)) return b !== undefined;
    return Object.keys(a).some((key) => cuts(a[key], b[key], c[key]));
  }

  function isMap(value: unknown): value is Record<string, unknown> {
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  }
});

describe('differences', () => {
  test('names the keys, the deepest ones, and those only one side has', () => {
    expect(differences({ a: 1, b: { c: [1], d: 2 }, e: 0 }, { a: 1, b: { c: [1, 2], d: 2 }, f: null })).toEqual([
      { key: 'b.c', a: [1], b: [1, 2] },
      { key: 'e', a: 0, b: undefined },
      { key: 'f', a: undefined, b: null },
    ]);
  });

  test('a configuration does not differ from what is read back of it', () => {
    const config = load(DATA);
    expect(differences(config, parse(resolvedYaml(config)))).toEqual([]);
  });
});

describe('the reference file', () => {
  test('has every key with its description, what it accepts and its default', () => {
    expect(referenceYaml(schema, 'Every key.')).toBe(`# Every key.

# Seed of the run.
# An integer of at least 0; default 1.
seed: 1

# Name of the run.
# Text; optional.
# name:

# The tasks.
# A list of at least 1 item in which each item is an integer of at least 1; default [1,2,3].
tasks: [1, 2, 3]

# "auto" or an integer of at least 1; default "auto".
threads: auto

data:
  # Where the data are.
  # Text; required.
  folder: data/toy

# How parameters are updated.
optimizer:
  # A number above 0; default 0.001.
  learningRate: 0.001

  # "constant", "cosine" or "linear"; default "constant".
  decay: constant

# Every task alike.
strategy:
  name: "mtl"

# Or:
# strategy:
#   name: "learned"
#
#   # An integer of at least 1; default 32.
#   hidden: 32
#
#   # A number; default 0.
#   entropy: 0
`);
  });

  test('is a configuration with everything at its default', () => {
    expect(load(referenceYaml(schema))).toEqual(load('data: {folder: data/toy}\n'));
    const common = z.strictObject(commonKeys);
    expect(loadConfig(common, write({ 'run.yaml': referenceYaml(common) }))).toEqual(common.parse({}));
  });
});

test('the JSON Schema for editors knows `extends` and requires nothing', () => {
  const exported = jsonSchema(schema) as { properties: Record<string, { required?: string[]; type?: string }> };
  expect(exported.properties.extends.type).toBe('string');
  expect(exported.properties.data.required).toBeUndefined();
  expect(exported).not.toHaveProperty('required');
  expect(exported).toHaveProperty('properties.optimizer.properties.learningRate.exclusiveMinimum', 0);
});

test('a run is named by its configuration, or else after its file', () => {
  expect(runPath({ out: 'runs' }, 'configs/toy.yaml')).toBe(join('runs', 'toy'));
  expect(runPath({ out: 'runs', name: 'x' }, 'configs/toy.yaml')).toBe(join('runs', 'x'));
});

const DATA = 'data: {folder: here}\n';

let folder = '';

function write(files: Record<string, string>): string {
  folder = temporaryFolder();
  mkdirSync(join(folder, 'bases'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return join(folder, 'run.yaml');
}

function load(text: string, set: string[] = []): z.output<typeof schema> {
  return loadConfig(schema, write({ 'run.yaml': text }), { set });
}

function problems(text: string, set: string[] = []): string[] {
  return shortened(failure(() => load(text, set))).split('\n');
}

function failure(action: () => unknown): InputError {
  try {
    action();
  } catch (error) {
    if (error instanceof InputError) return error;
    throw error;
  }
  throw new Error('expected an InputError');
}

/** Without the folder of the test, however its path was shown. */
function shortened(error: InputError): string {
  return error.message.replaceAll(`${folder}/`, '').replaceAll(`${relative(process.cwd(), folder)}/`, '');
}
