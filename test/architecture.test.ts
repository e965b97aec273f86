import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const page = (name: string): string => readFileSync(join(root, 'docs', name), 'utf8');
const folders = readdirSync(join(root, 'src'), { withFileTypes: true }).flatMap((entry) =>
  entry.isDirectory() ? [entry.name] : [],
);

/** Paths between backticks, of the repository or below src/. */
function pathsOf(text: string): string[] {
  const quoted = [...text.matchAll(/`([^`\s]+)`/g)].map(([, path]) => path);
  return quoted.filter((path) => /^[\w./-]+(\/|\.(ts|mjs|md|yaml))$/.test(path) && path !== 'members/');
}

describe.each(['architecture.md', 'decisions.md'])('docs/%s', (name) => {
  it('names paths that are there', () => {
    const paths = pathsOf(page(name));
    expect(paths.length).toBeGreaterThan(5);
    expect(paths.filter((path) => !existsSync(join(root, path)) && !existsSync(join(root, 'src', path)))).toEqual([]);
  });
});

describe('docs/architecture.md', () => {
  it('has every folder of the source in its picture and its table, and no other', () => {
    const [, picture] = /```mermaid\n([\s\S]*?)```/.exec(page('architecture.md')) ?? [];
    const drawn = new Set(picture.replaceAll(/\[.*?\]/g, '').match(/\b[a-z]+\b/g));
    for (const word of ['flowchart', 'ground', 'page', 'assembly']) drawn.delete(word);
    expect([...drawn].sort()).toEqual(folders.sort());
    const [, table] = /\| folder \|.*\n([\s\S]*?)\n\n/.exec(page('architecture.md')) ?? [];
    const listed = [...table.matchAll(/`([a-z]+)\/`/g)].map(([, folder]) => folder);
    expect(listed.sort()).toEqual(folders);
  });

  it('is one page', () => {
    expect(page('architecture.md').split(/\s+/).length).toBeLessThan(900);
  });
});
