import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Diagnosis } from '../../src/cli/doctor.js';
import { trainConfigSchema } from '../../src/problems/index.js';
import { workersOf } from '../../src/run/index.js';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const tcts = (...args: string[]): string => execFileSync(process.execPath, [main, ...args], { encoding: 'utf8' });

describe('tcts doctor', () => {
  it('measures this machine and finds nothing essential missing', () => {
    const { versions, machine, speed, missing } = JSON.parse(tcts('doctor', '--json')) as Diagnosis;
    expect(versions.node).toBe(process.versions.node);
    expect(versions.onnxruntime).toMatch(/^\d+\.\d+\.\d+$/);
    expect(machine.cores).toBe(availableParallelism());
    expect(Object.keys(speed.gemmGflops)).toContain('1');
    for (const figure of [...Object.values(speed.gemmGflops), ...Object.values(speed.gruSamplesPerSecond)]) {
      expect(figure).toBeGreaterThan(0);
    }
    expect(missing.filter(({ fatal }) => fatal)).toEqual([]);
  });

  it('says how many threads and workers a run has whose configuration names none', { timeout: 60_000 }, () => {
    const config = trainConfigSchema.parse({ problem: { kind: 'known-answer' }, strategy: { name: 'mtl' } });
    // The same on every machine, whatever it has: results depend on it.
    expect([config.threads, workersOf(config)]).toEqual([2, 2]);
    const cores = availableParallelism();
    const hint = cores === 2 ? '' : `; for all of this machine: --set threads=${cores}`;
    expect(tcts('doctor')).toContain(`threads in use  2 by default, as 2 data-parallel workers${hint}\n`);
  });

  it('is listed with an example', () => {
    expect(tcts('doctor', '--help')).toContain('tcts doctor');
    expect(tcts('--help')).toContain('doctor');
  });
});
