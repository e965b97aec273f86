import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { launch, openMpi } from '../../src/ranks.js';
import { describeWithMpi, mpirun } from '../mpirun.js';

const child = fileURLToPath(new URL('./mpi-child.mjs', import.meta.url));

/** What the child prints with this many workers, in one process or in each process of a job. */
function run(workers: number, launcher: readonly string[] = []) {
  const [program, ...args] = [...launcher, process.execPath, child, String(workers)];
  return JSON.parse(execFileSync(program, args, { encoding: 'utf8' }));
}

describeWithMpi.each([2, 3])('%i processes', (count) => {
  it('train as many workers of one process do, bit for bit', { timeout: 120_000 }, () => {
    const { found } = run(count);
    const job = run(1, mpirun(count));
    for (const losses of [found.gru.losses, found.transformer.losses]) expect(losses.every(Number.isFinite)).toBe(true);
    expect(job.all).toEqual(Array(count).fill(found));
    expect(job.shared).toEqual(Array.from({ length: count }, (_, rank) => [rank, rank]));
    // No element is wrong, in one round or in many.
    expect(job.sums).toEqual([0, 0, 0, 0]);
  });
});

describeWithMpi('2 processes of 2 workers', () => {
  it('have the shards of 4 workers and add their gradients in another order', { timeout: 120_000 }, () => {
    const { found } = run(4);
    const { all } = run(2, mpirun(2));
    expect(all[1]).toEqual(all[0]);
    // Of the first step, which gradients have no part in yet: the loss of the batch and those of its 37 samples.
    expect(all[0].gru.losses.slice(0, 38)).toEqual(found.gru.losses.slice(0, 38));
    all[0].gru.losses.forEach((loss: number, i: number) => {
      expect(loss).toBeCloseTo(found.gru.losses[i], 4);
    });
  });
});

describe('a launcher', () => {
  it.each([
    ['none', {}, undefined],
    ['of one process is none', { OMPI_COMM_WORLD_SIZE: '1', OMPI_COMM_WORLD_RANK: '0' }, undefined],
    ['Open MPI', { OMPI_COMM_WORLD_SIZE: '4', OMPI_COMM_WORLD_RANK: '3' }, { rank: 3, size: 4 }],
    ['MPICH', { PMI_SIZE: '2', PMI_RANK: '1' }, { rank: 1, size: 2 }],
    ['Slurm with PMIx', { SLURM_STEP_NUM_TASKS: '8', PMIX_RANK: '5' }, { rank: 5, size: 8 }],
    ['Slurm without MPI is none', { SLURM_STEP_NUM_TASKS: '8' }, undefined],
  ])('is known by its environment: %s', (_, environment, expected) => {
    expect(launch(environment)).toEqual(expected);
  });
});

describe('an MPI library', () => {
  it.each([
    ['/nowhere/libmpi.so', /started this program 2 times, but no usable .* \(\/nowhere\/libmpi\.so cannot be loaded\)/],
    ['libc.so.6', /libc\.so\.6 is not Open MPI\): install Open MPI, or name its libmpi in TCTS_MPI_LIBRARY$/],
  ])('that cannot be used, %s, is refused with one sentence', async (library, sentence) => {
    await expect(openMpi({ rank: 0, size: 2 }, library)).rejects.toThrow(sentence);
  });
});
