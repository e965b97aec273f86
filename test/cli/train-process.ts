import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
if (!existsSync(main)) throw new Error('these tests run the built command line: npm run build first');

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** `tcts …` as its own process, in a folder. */
export function startTcts(cwd: string, ...args: string[]) {
  return startTctsBy([], cwd, ...args);
}

/** The same, started by another program: its name and arguments. */
export function startTctsBy(launcher: readonly string[], cwd: string, ...args: string[]) {
  const [program, ...rest] = [...launcher, process.execPath, main, ...args];
  const child = spawn(program, rest, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  const collect = async (): Promise<Ended> => {
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    return { code, signal, stdout, stderr };
  };
  return { child, ended: collect() };
}

export function tcts(cwd: string, ...args: string[]): Promise<Ended> {
  return startTcts(cwd, ...args).ended;
}
