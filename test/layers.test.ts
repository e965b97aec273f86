import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/** From top to bottom; folders on one line do not import each other. Files directly in src/ are the ground. */
const LAYERS = [
  ['cli'],
  ['serve'],
  ['report'],
  ['sweep'],
  ['problems'],
  ['translate', 'forecast', 'series'],
  ['schedule'],
  ['run'],
  ['metrics'],
  ['nn', 'optim'],
  ['tensor'],
  ['ground'],
];

const root = fileURLToPath(new URL('../src', import.meta.url));
const files = (readdirSync(root, { recursive: true }) as string[]).filter((file) => file.endsWith('.ts'));
/** The package's public face names every layer; it is no layer itself. */
const sources = files.filter((file) => file !== 'index.ts');

const folderOf = (file: string): string => (file.includes(sep) ? file.split(sep)[0] : 'ground');
const levelOf = (folder: string): number => LAYERS.findIndex((layer) => layer.includes(folder));

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, path]) =>
    relative(root, resolve(root, dirname(file), path)),
  );
}

describe('the layers', () => {
  it('contain every folder of the source', () => {
    expect([...new Set(sources.map(folderOf))].filter((folder) => levelOf(folder) < 0)).toEqual([]);
  });

  it('import only downward', () => {
    const wrong = sources.flatMap((file) => {
      const from = folderOf(file);
      return importsOf(file)
        .filter((target) => folderOf(target) !== from && levelOf(folderOf(target)) <= levelOf(from))
        .map((target) => `${file} imports ${target}`);
    });
    expect(wrong).toEqual([]);
  });
});
