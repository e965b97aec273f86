import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { Arena, type ParameterSpec } from '../../src/optim/arena.js';
import { loadArena, saveArena } from '../../src/optim/arena-file.js';
import { readSafetensors } from '../../src/optim/safetensors.js';
import { Random } from '../../src/random.js';

const parameters: ParameterSpec[] = [
  { name: 'encoder.weight', shape: [4, 5] },
  { name: 'encoder.bias', shape: [5] },
  { name: 'temperature', shape: [] },
];

function filled(slots: number, dtype: 'f32' | 'f64' = 'f32', specs = parameters): Arena {
  const arena = new Arena(specs, { slots, dtype });
  const random = new Random('arena');
  for (const name of arena.names) {
    random.fillNormal(arena.value(name), 0, 1);
    for (let i = 0; i < slots; i++) random.fillNormal(arena.slot(i, name), 0, 1);
  }
  return arena;
}

describe('an arena in a file', () => {
  let folder: string;
  let path: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tcts-arena-'));
    path = join(folder, 'model.safetensors');
  });
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  it.each(['f32', 'f64'] as const)('comes back bit for bit, optimiser arrays included (%s)', (dtype) => {
    const saved = filled(2, dtype);
    saveArena(path, saved, { slots: 2, metadata: { step: '7' } });
    const loaded = new Arena(parameters, { slots: 2, dtype });
    expect(loadArena(path, loaded, { slots: 2 })).toEqual({ step: '7' });
    expect(loaded.values).toEqual(saved.values);
    expect(loaded.slot(0)).toEqual(saved.slot(0));
    expect(loaded.slot(1)).toEqual(saved.slot(1));
  });

  it('has the parameters under their own names and shapes', () => {
    const saved = filled(1);
    saveArena(path, saved);
    const { tensors } = readSafetensors(path);
    expect([...tensors.keys()]).toEqual(['encoder.weight', 'encoder.bias', 'temperature']);
    expect(tensors.get('encoder.weight')).toEqual({
      dtype: 'F32',
      shape: [4, 5],
      data: saved.value('encoder.weight').slice(),
    });
  });

  it('can be read without its optimiser arrays', () => {
    const saved = filled(2);
    saveArena(path, saved, { slots: 2 });
    const loaded = new Arena(parameters);
    loadArena(path, loaded);
    expect(loaded.values).toEqual(saved.values);
  });

  it('has only as many optimiser arrays as asked for, so that an arena may have others for work', () => {
    const saved = filled(3);
    saveArena(path, saved, { slots: 2 });
    const loaded = new Arena(parameters, { slots: 2 });
    loadArena(path, loaded, { slots: 2 });
    expect(loaded.slot(1)).toEqual(saved.slot(1));
    saveArena(path, saved, { slots: 3 });
    expect(() => loadArena(path, loaded, { slots: 2 })).toThrow(
      'slot.2/encoder.weight: the model has no such parameter',
    );
  });

  it('is refused when parameters are missing, left over, of another shape or type, and nothing is loaded', () => {
    saveArena(path, filled(1), { slots: 1 });
    const [weight, bias, temperature] = parameters;
    const cases: [Arena, string, number?][] = [
      [new Arena([...parameters, { name: 'decoder', shape: [1] }]), 'decoder: the file lacks this parameter'],
      [new Arena([weight, bias]), 'temperature: the model has no such parameter'],
      [
        new Arena([{ name: 'encoder.weight', shape: [5, 4] }, bias, temperature]),
        'encoder.weight: the file has the shape [4, 5], the model [5, 4]',
      ],
      [new Arena(parameters, { dtype: 'f64' }), 'encoder.weight: the file has F32, the model F64'],
      [new Arena(parameters, { slots: 2 }), 'slot.1/encoder.weight: the file lacks this parameter', 2],
    ];
    for (const [arena, message, slots = 0] of cases) {
      expect(() => loadArena(path, arena, { slots })).toThrow(InputError);
      expect(() => loadArena(path, arena, { slots })).toThrow(`${path}: ${message}`);
      expect(arena.values.every((x) => x === 0)).toBe(true);
    }
  });

  it('cannot be written when a parameter has the name of an optimiser array', () => {
    const arena = filled(1, 'f32', [
      { name: 'a', shape: [1] },
      { name: 'slot.0/a', shape: [1] },
    ]);
    expect(() => saveArena(path, arena, { slots: 1 })).toThrow('slot.0/a: a parameter has the name');
  });
});
