import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type ReportFiles, writeReport } from '../../src/report/index.js';
import { metricOf } from '../../src/report/reader.js';
import { temporaryFolder } from '../run/temporary.js';
import { makeTranslation, REFERENCES } from './run-folders.js';

it('draws what each policy gave by its own knob, beside wait-k and the scheduler', async () => {
  const folder = temporaryFolder();
  const run = (name: string) => join(folder, name);
  const seed = 1;
  for (const main of [1, 3]) {
    const waits = [{ k: main, outputs: REFERENCES, bleu: 20 + main }];
    const policies = main === 3 ? [{ policy: 'adaptive:from=0.4', bleu: 26, AL: 2.5 }] : [];
    makeTranslation(run(`wait-${main}`), { strategy: 'fixed', seed, main, waits });
    makeTranslation(run(`tcts-${main}`), { strategy: 'learned', seed, main, waits, policies });
  }
  makeTranslation(run('wait-5'), {
    ...{ strategy: 'fixed', seed, main: 5 },
    policies: [{ policy: 'adaptive:from=0.4', bleu: 25, AL: 2.6, models: ['runs/wait-1', 'runs/wait-3'] }],
  });
  makeTranslation(run('full'), {
    ...{ strategy: 'fixed', seed, set: { 'problem.waits': 'full' } },
    policies: [
      { policy: 'wait-if-diff:initial=6,step=1', bleu: 30, AL: 6, earlyEnd: 'block' },
      { policy: 'wait-if-diff:initial=2,step=1', bleu: 22, AL: 3, earlyEnd: 'block' },
      { policy: 'wait-k:full', bleu: 33, AL: 14 },
    ],
  });
  for (const latencyWeight of [0.1, 0.3]) {
    makeTranslation(run(`milk-${latencyWeight}`), {
      ...{ strategy: 'fixed', seed },
      set: { 'problem.kind': 'monotonic', 'problem.attention': 'milk', 'problem.latencyWeight': latencyWeight },
      policies: [{ policy: 'monotonic', bleu: 29 - 10 * latencyWeight, AL: 5 - 10 * latencyWeight }],
    });
  }
  makeTranslation(run('itst'), {
    ...{ strategy: 'fixed', seed, set: { 'problem.kind': 'monotonic', 'problem.attention': 'itst' } },
    policies: [0.9, 0.5].map((delta) => ({ policy: `itst:delta=${delta}`, bleu: 20 + 9 * delta, AL: 6 * delta })),
  });

  const files = await writeReport(folder);

  expect(curvesIn(files)).toEqual([
    ['wait-k', '1', 1, 21],
    ['wait-k', '3', 3, 23],
    ['TCTS', '1', 1, 21],
    ['TCTS', '3', 3, 23],
    ['WID', 'wait-if-diff:initial=2,step=1', 3, 22],
    ['WID', 'wait-if-diff:initial=6,step=1', 6, 30],
    ['Zheng et al., 3 models', 'adaptive:from=0.4', 2.6, 25],
    ['Zheng et al., TCTS', 'adaptive:from=0.4', 2.5, 26],
    ['ITST', 'itst:delta=0.5', 3, 24.5],
    ['ITST', 'itst:delta=0.9', 5.4, 28.1],
    ['MILk', 'latencyWeight=0.3 varianceWeight=default', 2, 26],
    ['MILk', 'latencyWeight=0.1 varianceWeight=default', 4, 28],
  ]);
  const rows = readFileSync(join(files.folder, 'tables/multi30k-policies.md'), 'utf8').trim().split('\n').slice(2);
  expect(rows).toHaveLength(9);
  expect(rows.join('\n')).toContain('adaptive:from=0.4, 3 models');
  expect(rows.join('\n')).toContain('| full sentence | wait-k:full |');

  // In the caption of the results, of all figures, and of the other policies.
  const signature = 'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0+tcts';
  const page = readFileSync(join(files.folder, 'report.md'), 'utf8').replaceAll('\\', '');
  expect(page.split(signature).length - 1).toBeGreaterThanOrEqual(3);
});

it('draws more policies than a figure has styles for in several figures, each with wait-k, and HMT through its models', async () => {
  const folder = temporaryFolder();
  const seed = 1;
  const waits = [{ k: 3, outputs: REFERENCES, bleu: 23 }];
  makeTranslation(join(folder, 'wait-3'), { strategy: 'fixed', seed, main: 3, waits });
  const over = [
    'alignatt:f=2',
    'edatt:alpha=0.4',
    'adaptive:from=0.4',
    'wait-if-diff:initial=2',
    'wait-if-worse:initial=2',
  ];
  makeTranslation(join(folder, 'mtl'), {
    ...{ strategy: 'mtl', seed, main: 3 },
    policies: over.map((policy, i) => ({ policy, bleu: 20 + i, AL: 2 + i })),
  });
  const own = (name: string, attention: string, [key, value]: [string, unknown], policy: string, AL: number) =>
    makeTranslation(join(folder, name), {
      ...{ strategy: 'fixed', seed },
      set: { 'problem.kind': 'monotonic', 'problem.attention': attention, [key]: value },
      policies: [{ policy, bleu: 25, AL }],
    });
  for (const first of [5, 1]) {
    own(`hmt-${first}`, 'hmt', ['problem.candidates', { first, states: 4 }], 'hmt:p=0.5', first + 1);
  }
  for (const attention of ['milk', 'mma-il', 'mma-h', 'itst']) {
    const policy = attention === 'itst' ? 'itst:delta=0.5' : 'monotonic';
    own(attention, attention, ['problem.latencyWeight', 0.1], policy, 3);
  }

  const files = await writeReport(folder);
  const first = curvesIn(files);
  const second = curvesIn(files, '-2');
  const names = (points: unknown[][]) => [...new Set(points.map(([method]) => method))];
  expect(names(first)[0]).toBe('wait-k');
  expect(names(second)[0]).toBe('wait-k');
  const drawn = [...names(first), ...names(second).slice(1)];
  expect(drawn.sort()).toEqual(
    ['wait-k', 'AlignAtt', 'EDAtt', 'Zheng et al.', 'WID', 'WIW', 'HMT', 'MILk', 'MMA-IL', 'MMA-H', 'ITST'].sort(),
  );
  expect([...first, ...second].filter(([method]) => method === 'HMT')).toEqual([
    ['HMT', 'hmt:p=0.5 L=1', 2, 25],
    ['HMT', 'hmt:p=0.5 L=5', 6, 25],
  ]);
  const rows = readFileSync(join(files.folder, 'tables/multi30k-policies.md'), 'utf8');
  expect(rows).toContain('| HMT (first 5) | hmt:p=0.5 |');
});

it('tests BLEU of lower case in lower case', () => {
  const metric = metricOf('nrefs:1|case:lc|eff:no|tok:char|smooth:exp|version:2.6.0+tcts', 'scores.json');
  expect(metric.signature(1)).toContain('|case:lc|eff:no|tok:char|');
  expect(metric.score(metric.measure('ein hund', ['EIN HUND']))).toBeCloseTo(100, 9);
});

/** Method, setting, AL and BLEU of each point of the figure, or of a further one. */
function curvesIn({ folder }: ReportFiles, further = ''): unknown[][] {
  const file = join(folder, `figures/multi30k-policies-latency${further}.csv`);
  const [, ...lines] = readFileSync(file, 'utf8').trim().split('\n');
  return lines.map((line) => {
    const [method, k, , AL, bleu] = cells(line);
    return [method, k, Number(AL), Number(bleu)];
  });
}

function cells(line: string): string[] {
  return [...line.matchAll(/(?:^|,)(?:"([^"]*)"|([^,]*))/g)].map(([, quoted, plain]) => quoted ?? plain);
}
