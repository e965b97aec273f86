import { spawnSync } from 'node:child_process';
import { describe } from 'vitest';

const present = spawnSync('mpirun', ['--version'], { encoding: 'utf8' }).stdout?.includes('Open MPI') ?? false;
if (!present && process.env.CI) throw new Error('CI must have the mpirun of Open MPI');
if (!present) console.warn('the mpirun of Open MPI is not installed: the tests that need it are skipped');

/** `describe`, skipped where Open MPI is absent (a user's machine); in CI absence is an error. */
export const describeWithMpi = present ? describe : describe.skip;

/** The command that starts so many processes on any machine, few cores and a privileged user included. */
export function mpirun(processes: number): string[] {
  return ['mpirun', '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none', '-n', String(processes)];
}
