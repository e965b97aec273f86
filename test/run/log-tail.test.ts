import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findRunFolders, LogTail, readEvaluations } from '../../src/run/index.js';
import { temporaryFolder } from './temporary.js';

/** The steps that a reader of the log knows after each look at it. */
function followed(path: string) {
  const tail = new LogTail(path);
  const steps: unknown[] = [];
  return () => {
    for (const { record } of tail.read(() => steps.splice(0))) steps.push(record?.step);
    return [...steps];
  };
}

describe('the tail of a log', () => {
  // What is known is always the whole lines of the file as it is, whatever happened to it between two looks.
  test('knows the whole lines of the file, however it grows, is cut or replaced', () => {
    const line = fc.nat(999).map((step) => `{"step":${step},"loss":0.${step}}\n`);
    const change = fc.oneof(
      fc.record({ kind: fc.constant('append' as const), text: line }),
      fc.record({ kind: fc.constant('half' as const), text: line, at: fc.nat(12) }),
      fc.record({ kind: fc.constant('cut' as const), at: fc.nat(200) }),
      fc.record({ kind: fc.constant('replace' as const), keep: fc.nat(200) }),
      fc.constant({ kind: 'look' as const }),
    );
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
        const folder = temporaryFolder();
        const path = join(folder, 'metrics.jsonl');
        const look = followed(path);
        let content = '';
        for (const one of changes) {
          if (one.kind === 'append') content += one.text;
          if (one.kind === 'half') content += one.text.slice(0, one.at);
          if (one.kind === 'cut') content = content.slice(0, one.at);
          if (one.kind === 'replace') content = content.slice(0, one.keep);
          if (one.kind === 'replace') {
            // As a resumed run does it: a new file with the beginning of the old one.
            writeFileSync(`${path}.new`, content);
            renameSync(`${path}.new`, path);
          } else if (one.kind !== 'look') writeFileSync(path, content);
          const whole = content.split('\n').slice(0, -1);
          expect(look()).toEqual(whole.map(stepIn));
        }
        rmSync(folder, { recursive: true });
      }),
      { numRuns: 60 },
    );
  });

  test('goes on where a reader has stopped early', () => {
    const path = join(temporaryFolder(), 'metrics.jsonl');
    writeFileSync(path, '{"step":1}\n{"step":2}\n{"step":3}\n');
    const tail = new LogTail(path);
    const restarts: number[] = [];
    for (const { record } of tail.read(() => restarts.push(1))) {
      expect(record).toEqual({ step: 1 });
      break;
    }
    expect([...tail.read(() => restarts.push(1))].map(({ record }) => record?.step)).toEqual([2, 3]);
    appendFileSync(path, '{"step":4}\n');
    expect([...tail.read(() => restarts.push(1))].map(({ record }) => record?.step)).toEqual([4]);
    expect(restarts).toEqual([1]);
  });
});

function stepIn(line: string): unknown {
  try {
    const record = JSON.parse(line);
    return typeof record === 'object' ? record?.step : undefined;
  } catch {
    return undefined;
  }
}

test('run folders are found at any depth, in the order of their numbers, links followed once or not at all', () => {
  const root = temporaryFolder();
  for (const name of ['b/run-10', 'b/run-9', 'a', '.hidden/x', 'b/run-9/inner']) {
    mkdirSync(join(root, name), { recursive: true });
    writeFileSync(join(root, name, 'run.json'), '{}');
  }
  // It is being made or copied.
  mkdirSync(join(root, 'c/half/checkpoints'), { recursive: true });
  writeFileSync(join(root, 'c/half/config.yaml'), '');
  symlinkSync(root, join(root, 'circle'));
  symlinkSync(join(root, 'b'), join(root, 'z'));
  const names = (options = {}) => [...findRunFolders(root, options)].map(({ name }) => name);
  expect(names()).toEqual(['a', 'b/run-9', 'b/run-10', 'c/half']);
  expect(names({ links: false })).toEqual(['a', 'b/run-9', 'b/run-10', 'c/half']);
  expect(names({ depth: 1 })).toEqual(['a']);
  expect([...findRunFolders(join(root, 'a'))].map(({ name }) => name)).toEqual(['a']);
  rmSync(join(root, 'b/run-9'), { recursive: true });
  expect([...findRunFolders(join(root, 'z'), { links: false })].map(({ name }) => name)).toEqual(['run-10']);
});

test('an evaluation counts once its scores are written', () => {
  const run = temporaryFolder();
  mkdirSync(join(run, 'evaluation/test-wait-3'), { recursive: true });
  expect(readEvaluations(run)).toEqual({ forecasts: [], translations: [], policies: [] });
  writeFileSync(join(run, 'evaluation/test-wait-3/scores.json'), '{"k": 3, "split": "test"}');
  expect(() => readEvaluations(run)).toThrow(/scores\.json: /);
});
