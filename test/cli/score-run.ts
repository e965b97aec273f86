import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { afterAll, vi } from 'vitest';
import { registerScore } from '../../src/cli/score.js';
import { runCommand } from '../../src/cli/terminal.js';

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** `tcts score …` inside this process. */
export async function score(...args: string[]): Promise<Outcome> {
  let [stdout, stderr] = ['', ''];
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += text;
    return true;
  });
  const err = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    stderr += text;
    return true;
  });
  const before = process.exitCode;
  process.exitCode = 0;
  try {
    const program = new Command('tcts');
    registerScore(program);
    await runCommand(() => program.parseAsync(['score', ...args], { from: 'user' }));
    return { code: Number(process.exitCode), stdout, stderr };
  } finally {
    process.exitCode = before;
    out.mockRestore();
    err.mockRestore();
  }
}

/** The JSON that `tcts score … --json` prints inside this process; fails on bad input. */
export async function scoreJson<T>(...args: string[]): Promise<T> {
  const { stdout, stderr } = await score(...args, '--json');
  if (stderr !== '') throw new Error(stderr);
  return JSON.parse(stdout) as T;
}

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** `tcts score …` as its own process, from the build. */
export function spawnScore(args: readonly string[], input?: string | Uint8Array): Outcome {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'score', ...args], { input, encoding: 'utf8' });
  return { code: status ?? -1, stdout, stderr };
}

/** Writes files into a folder of this test file alone, removed afterwards; returns their paths. */
export function scratch(): (name: string, content: string | Uint8Array) => string {
  const folder = mkdtempSync(join(tmpdir(), 'tcts-score-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  return (name, content) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };
}
