import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Diagnosis } from '../../src/cli/doctor.js';

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

  it('is listed with an example', () => {
    expect(tcts('doctor', '--help')).toContain('tcts doctor');
    expect(tcts('--help')).toContain('doctor');
  });
});
