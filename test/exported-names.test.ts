import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../src', import.meta.url));
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
const texts = new Map(files.map((file) => [file.replaceAll('\\', '/'), readFileSync(join(root, file), 'utf8')]));

const DECLARED =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type|enum) (\w+)/gm;

/**
 * Words that stand for one thing at two levels, as they do in PyTorch: the operation on tensors, and the layer that has
 * its parameters (`torch.nn.functional.linear`, `torch.nn.Linear`) or the same figure of plain numbers.
 */
const LEVELS: Readonly<Record<string, readonly string[]>> = {
  gru: ['nn/layers.ts', 'tensor/ops/gru.ts'],
  layerNorm: ['nn/layers.ts', 'tensor/ops/norm.ts'],
  linear: ['nn/layers.ts', 'tensor/ops/matmul.ts'],
  lstm: ['nn/layers.ts', 'tensor/ops/lstm.ts'],
  mean: ['metrics/statistics.ts', 'tensor/ops/reduce.ts'],
  meanSquaredError: ['metrics/forecast.ts', 'tensor/ops/loss.ts'],
};

describe('the names of the source', () => {
  it('are exported by one file each', () => {
    const owners = new Map<string, Set<string>>();
    for (const [file, text] of texts) {
      for (const [, name] of text.matchAll(DECLARED)) owners.set(name, (owners.get(name) ?? new Set()).add(file));
    }
    expect(owners.size).toBeGreaterThan(1000);
    const twice = [...owners].filter(([, own]) => own.size > 1).map(([name, own]) => [name, [...own].sort()]);
    expect(Object.fromEntries(twice)).toEqual(LEVELS);
  });

  it('are kept to their class by `private`, never by #', () => {
    const found = [...texts].filter(([, text]) => /^\s+(?:static )?(?:readonly )?#\w+|this\.#\w/m.test(text));
    expect(found.map(([file]) => file)).toEqual([]);
  });

  it('are not asserted to be there where an element may be missing', () => {
    const found = [...texts].filter(([, text]) => /\]!/.test(text));
    expect(found.map(([file]) => file)).toEqual([]);
  });
});

describe('the files of the source', () => {
  const lines = [...texts].map(([file, text]) => ({ file, lines: text.split('\n').length - 1 }));

  it('have at most 400 lines, half of them more than 100', () => {
    expect(lines.filter((one) => one.lines > 400)).toEqual([]);
    const sorted = lines.map((one) => one.lines).sort((a, b) => a - b);
    expect(sorted[Math.floor(sorted.length / 2)]).toBeGreaterThan(100);
  });
});
