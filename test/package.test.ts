import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verbFinalText } from '../src/translate/toy.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, unknown>;
};
const entries = Object.keys(exports)
  .filter((name) => name !== './package.json')
  .map((name) => `tcts${name.slice(1)}`);

/** A project in which the packed tarball is installed, with the dependencies of the repository. */
describe('the packed tarball', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tcts-package-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const modules = join(folder, 'node_modules');

  beforeAll(() => {
    execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: root, stdio: 'ignore' });
    const [tarball] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
    execFileSync('tar', ['xzf', tarball], { cwd: folder });
    mkdirSync(join(modules, '@types'), { recursive: true });
    renameSync(join(folder, 'package'), join(modules, 'tcts'));
    for (const name of readdirSync(join(root, 'node_modules'))) {
      // Types of others than Node.js are not installed with the package.
      if (name !== '@types' && name !== 'tcts' && !name.startsWith('.')) {
        symlinkSync(join(root, 'node_modules', name), join(modules, name));
      }
    }
    symlinkSync(join(root, 'node_modules/@types/node'), join(modules, '@types/node'));
  }, 120_000);

  it('has types that compile without skipLibCheck, at every entry', { timeout: 120_000 }, () => {
    const imports = entries.map((name, i) => `import * as entry${i} from '${name}';`);
    const used = `export const all = [${entries.map((_, i) => `entry${i}`).join(', ')}];`;
    const typed = `import { type schedule, trainRun } from 'tcts';
export const run = (): Promise<unknown> => trainRun({ problem: { kind: 'known-answer' }, strategy: { name: 'mtl' } });
export const task: schedule.Task = { name: 'wait-1', number: 1 };`;
    writeFileSync(join(folder, 'all.ts'), [...imports, used, typed].join('\n'));
    const compilerOptions = {
      ...{ target: 'ES2023', module: 'NodeNext', lib: ['ES2023'], types: ['node'] },
      ...{ strict: true, skipLibCheck: false, noEmit: true },
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['all.ts'] }));
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
    const tsc = join(root, 'node_modules/.bin/tsc');
    const compile = () => execFileSync(tsc, ['-p', folder], { encoding: 'utf8', stdio: 'pipe' });
    let found = '';
    try {
      compile();
    } catch (error) {
      found = (error as { stdout: string }).stdout;
    }
    expect(found).toBe('');
  });

  it('translates before any training, with the bundled model', { timeout: 120_000 }, () => {
    const main = join(modules, 'tcts/dist/cli/main.js');
    const { source, target } = verbFinalText(1, { train: 0, valid: 0 }).test[0];
    const options = { cwd: folder, input: `${source}\n`, encoding: 'utf8', stdio: 'pipe' } as const;
    expect(execFileSync(process.execPath, [main, 'translate', '--k', '9', '--beam', '1'], options)).toBe(`${target}\n`);
  });

  it.skipIf(process.platform === 'win32')('has a command that can be run, in a clone as well', () => {
    for (const place of [root, join(modules, 'tcts')]) {
      expect(statSync(join(place, 'dist/cli/main.js')).mode & 0o111, place).toBe(0o111);
    }
  });

  it('takes at most 20 MB, the page and its runtime included', () => {
    const files = readdirSync(join(modules, 'tcts'), { recursive: true, encoding: 'utf8' });
    const sizes = files.map((name) => statSync(join(modules, 'tcts', name))).filter((file) => file.isFile());
    expect(sizes.reduce((sum, { size }) => sum + size, 0)).toBeLessThan(20e6);
    expect(files).not.toContain('dist/site');
  });
});
