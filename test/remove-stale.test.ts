import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';

const script = fileURLToPath(new URL('../remove-stale.mjs', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'tcts-stale-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(paths: readonly string[]): void {
  for (const path of paths) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), '');
  }
}

it('a build leaves nothing of sources that are gone, and all that does not come from them', () => {
  const kept = ['dist/a.d.ts', 'dist/a.js', 'dist/a.js.map', 'dist/api/page.js', 'dist/kernels.wasm', 'dist/n/b.js'];
  const gone = ['dist/old.js', 'dist/n/old.d.ts', 'dist/n/old.js.map', 'dist/left/deep/c.js'];
  write(['src/a.ts', 'src/n/b.ts', ...kept, 'dist/page/main.js', ...gone]);
  execFileSync(process.execPath, [script, join(folder, 'src'), join(folder, 'dist')]);
  const found = (readdirSync(folder, { recursive: true }) as string[]).filter((path) => path.startsWith('dist'));
  expect(found.sort()).toEqual(['dist', 'dist/api', 'dist/n', 'dist/page', 'dist/page/main.js', ...kept].sort());
});
