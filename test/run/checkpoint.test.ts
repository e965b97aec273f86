import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InputError } from '../../src/errors.js';
import { readSafetensors } from '../../src/optim/safetensors.js';
import {
  bestCheckpoint,
  type Checkpoint,
  latestCheckpoint,
  readCheckpoint,
  saveBest,
  saveCheckpoint,
} from '../../src/run/index.js';
import { temporaryFolder } from './temporary.js';

describe('a checkpoint', () => {
  test('comes back as it was saved', () => {
    const { tensors, state, step } = readCheckpoint(saveCheckpoint(temporaryFolder(), checkpoint(7)));
    expect({ tensors, state, step }).toEqual(checkpoint(7));
  });

  test('keeps numbers that JSON has no word for', () => {
    const state = { best: Number.NEGATIVE_INFINITY, nested: [Number.NaN, -0, 0.1 + 0.2, Number.MIN_VALUE] };
    const saved = saveCheckpoint(temporaryFolder(), { ...checkpoint(1), state });
    expect(readCheckpoint(saved).state).toStrictEqual(state);
  });

  test('is a safetensors file that others can read', () => {
    const { tensors, metadata } = readSafetensors(saveCheckpoint(temporaryFolder(), checkpoint(7)));
    expect(tensors).toEqual(checkpoint(7).tensors);
    expect(metadata).toMatchObject({ step: '7', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
  });

  test('may have a tensor and a state that look like its checksum', () => {
    const odd = {
      step: 1,
      tensors: new Map([['sha256', { dtype: 'U8', shape: [2], data: new Uint8Array([1, 2]) } as const]]),
      state: { sha256: '0'.repeat(64), text: '"sha256":"' },
    };
    expect(readCheckpoint(saveCheckpoint(temporaryFolder(), odd))).toMatchObject(odd);
  });

  test('that has any byte changed, added or missing is always refused, with a sentence', () => {
    const folder = temporaryFolder();
    const whole = readFileSync(saveCheckpoint(folder, checkpoint(7)));
    const damaged = join(folder, 'damaged.safetensors');
    const refused = (bytes: Uint8Array) => {
      writeFileSync(damaged, bytes);
      expect(() => readCheckpoint(damaged)).toThrow(InputError);
    };
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const bytes = Uint8Array.from(whole);
        bytes[at] ^= change;
        refused(bytes);
      }),
      { numRuns: 500 },
    );
    fc.assert(fc.property(fc.nat(whole.length - 1), (length) => refused(whole.subarray(0, length))));
    fc.assert(fc.property(fc.uint8Array({ minLength: 1 }), (more) => refused(Buffer.concat([whole, more]))));
    fc.assert(fc.property(fc.uint8Array({ maxLength: 500 }), refused));
  });
});

describe('a folder of checkpoints', () => {
  test('keeps the last two, or as many as wanted, and the best', () => {
    const folder = temporaryFolder();
    saveBest(folder, checkpoint(1));
    for (const step of [1, 2, 3, 10]) saveCheckpoint(folder, checkpoint(step));
    expect(readdirSync(folder).sort()).toEqual([
      'best.safetensors',
      'step-000000003.safetensors',
      'step-000000010.safetensors',
    ]);
    for (const step of [11, 12, 13]) saveCheckpoint(folder, checkpoint(step), { keep: 3 });
    expect(readdirSync(folder)).toHaveLength(4);
    expect(bestCheckpoint(folder)?.step).toBe(1);
    expect(() => saveCheckpoint(folder, checkpoint(14), { keep: 1 })).toThrow(RangeError);
  });

  test('gives the newest, by step and not by name', () => {
    const folder = temporaryFolder();
    for (const step of [999_999_999, 1_000_000_000]) saveCheckpoint(folder, checkpoint(step));
    expect(latestCheckpoint(folder, unexpected)?.step).toBe(1_000_000_000);
  });

  test('passes over a damaged one with a warning', () => {
    const folder = temporaryFolder();
    saveCheckpoint(folder, checkpoint(1));
    truncateSync(saveCheckpoint(folder, checkpoint(2)), 100);
    const warnings: string[] = [];
    expect(latestCheckpoint(folder, (warning) => warnings.push(warning))?.step).toBe(1);
    expect(warnings).toEqual([expect.stringMatching(/damaged and was skipped: .*step-000000002/)]);
  });

  test('with damaged ones only is refused; an empty or absent one has none', () => {
    const folder = temporaryFolder();
    expect(latestCheckpoint(folder, unexpected)).toBeUndefined();
    expect(latestCheckpoint(join(folder, 'absent'), unexpected)).toBeUndefined();
    expect(bestCheckpoint(folder)).toBeUndefined();
    writeFileSync(join(folder, 'step-000000001.safetensors'), '');
    expect(() => latestCheckpoint(folder, () => {})).toThrow(/none of the 1 checkpoints can be read/);
  });

  test('cannot be where a file is', () => {
    const file = join(temporaryFolder(), 'file');
    writeFileSync(file, '');
    expect(() => saveCheckpoint(join(file, 'checkpoints'), checkpoint(1))).toThrow(InputError);
  });
});

function checkpoint(step: number): Checkpoint {
  return {
    step,
    tensors: new Map([
      ['weights', { dtype: 'F32', shape: [2, 3], data: Float32Array.from([1, 2, 3, 4, 5, step]) }],
      ['mask', { dtype: 'U8', shape: [3], data: Uint8Array.from([0, 1, 0]) }],
    ]),
    state: { random: [1, 2, 3, step], position: { epoch: 1, batch: 2 } },
  };
}

function unexpected(sentence: string): never {
  throw new Error(sentence);
}
