import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';

interface Case {
  readonly name: string;
  readonly ours: { readonly module: string };
  readonly target: number;
}

test('the bench compares influence with mtl at both sizes of the paper, with the bars of its cost', async () => {
  const folder = new URL('../bench/', import.meta.url);
  const { cases } = (await import(new URL('cases.mjs', folder).href)) as { cases: readonly Case[] };
  const found = cases.filter(({ name }) => name.startsWith('influence-'));
  expect(found.map(({ name, target }) => [name, target])).toEqual([
    ['influence-stocks', 1.12],
    ['influence-translation', 1.2],
  ]);
  for (const { ours } of found) expect(existsSync(new URL(ours.module, folder))).toBe(true);
});
