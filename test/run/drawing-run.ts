import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('./drawing-run.mjs', import.meta.url));
const built = fileURLToPath(new URL('../../dist/run/index.js', import.meta.url));
if (!existsSync(built)) throw new Error('these tests run the built library: npm run build first');

export interface DrawingRunOptions {
  total: number;
  /** Length of the only tensor. */
  size?: number;
  everySteps?: number | null;
  everySeconds?: number | null;
  /** Milliseconds that a step takes at least. */
  pause?: number;
  /** Take the folder from a process on another host. */
  takeOver?: boolean;
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export function startDrawingRun(
  folder: string,
  options: DrawingRunOptions,
  wrap: (command: string[]) => string[] = (c) => c,
  environment: Record<string, string> = {},
) {
  const [command, ...args] = wrap([process.execPath, program, folder, JSON.stringify(options)]);
  const env = { ...process.env, ...environment };
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  return { child, ended: collect(child) };
}

async function collect(child: ChildProcess): Promise<Ended> {
  let [stdout, stderr] = ['', ''];
  child.stdout!.setEncoding('utf8').on('data', (text) => (stdout += text));
  child.stderr!.setEncoding('utf8').on('data', (text) => (stderr += text));
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { code, signal, stdout, stderr };
}
