import { truncateSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { Arena } from '../../src/optim/index.js';
import { checkpointFolder, createRun, saveBest, saveCheckpoint } from '../../src/run/index.js';
import { loadParameters } from '../../src/schedule/index.js';
import { temporaryFolder } from '../run/temporary.js';

describe('the parameters of a run', () => {
  let run: string;
  let paths: string[];
  const arena = new Arena([
    { name: 'a', shape: [2] },
    { name: 'b', shape: [] },
  ]);

  beforeEach(() => {
    run = `${temporaryFolder()}/run`;
    createRun(run, { config: {}, seed: 1, command: [] }).lock.release();
    const folder = checkpointFolder(run);
    paths = [1, 2, 3].map((step) =>
      saveCheckpoint(folder, checkpoint(step, [step, 10 * step], 4 ** step), { keep: 3 }),
    );
    saveBest(folder, checkpoint(2, [7, 8], 9));
  });

  it.each([
    ['best', 2, [7, 8, 9]],
    ['latest', 3, [3, 30, 64]],
    ['average:2', 3, [2.5, 25, 40]],
    ['average:3', 3, [2, 20, 28]],
  ] as const)('are those of %s', (choice, step, values) => {
    expect(loadParameters(run, arena, choice)).toBe(step);
    expect([...arena.value('a'), ...arena.value('b')]).toEqual(values);
  });

  it('are not averaged over fewer checkpoints than asked for, damaged ones not counted', () => {
    truncateSync(paths[2], 100);
    expect(loadParameters(run, arena, 'average:2')).toBe(2);
    expect([...arena.value('a')]).toEqual([1.5, 15]);
    expect(() => loadParameters(run, arena, 'average:3')).toThrow(
      'there are 2 checkpoints, average:3 needs 3: train with --set saving.keep=3',
    );
  });
});

function checkpoint(step: number, a: number[], b: number) {
  const f32 = (shape: number[], values: number[]) => ({ dtype: 'F32', shape, data: new Float32Array(values) }) as const;
  const tensors = new Map([
    ['problem/model/a', f32([2], a)],
    ['problem/model/b', f32([], [b])],
  ]);
  return { step, tensors, state: { subject: { problem: { model: null } } } };
}
