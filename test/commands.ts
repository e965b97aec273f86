import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));

/** The commands of a page in their order, without the remarks behind them. */
export function commandsIn(page: string): string[] {
  return [...page.matchAll(/```sh\n([\s\S]*?)```/g)]
    .flatMap(([, block]) => block.split('\n'))
    .map((line) => line.replace(/\s+#.*$/, '').trim())
    .filter((line) => line.startsWith('tcts '));
}

/** The arguments of a command as a shell divides it, single quotes included. */
export function argumentsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word).slice(1);
}

/** The configurations of a page that begin with the name of their file: `# mine.yaml`. */
export function filesIn(page: string): Record<string, string> {
  const blocks = [...page.matchAll(/```yaml\n(# (\S+\.yaml)\n[\s\S]*?)```/g)];
  return Object.fromEntries(blocks.map(([, text, name]) => [name, text]));
}

/** Runs a command as a process; a server until it says where it listens, and then as Ctrl-C ends it. */
export async function runCommand(cwd: string, args: readonly string[]) {
  const child = spawn(process.execPath, [main, ...args], { cwd });
  let [stdout, stderr] = ['', ''];
  let stopped = false;
  child.stdin.end('ba be bi\n');
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    if (args[0] === 'serve' && !stopped && stderr.includes('http://')) {
      stopped = true;
      // It says so a moment before it listens for Ctrl-C.
      setTimeout(() => child.kill('SIGINT'), 500);
    }
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}
