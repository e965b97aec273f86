// The tables of docs/results/multi30k.md and policies.md from the lines of docs/results/translation.csv.
import { holm, interval, mean, pairedTTest } from '../dist/metrics/index.js';
import { formatP, markBestOfRows, seedEstimate, signed, textColumn } from '../dist/report/document.js';
import { markdownBlock } from '../dist/report/files.js';
import { countRuns, loadGrid } from '../dist/sweep/index.js';
import { readLines, shippedGrid, WAITS } from './translation-lines.mjs';

/** The methods of the main table, by group and what the grid varies in it. */
const METHODS = {
  'wait-k': (k) => `wait,main=${k}`,
  CL: (k) => `scheduled,strategy=curriculum,main=${k}`,
  MTL: () => 'all-waits',
  TCTS: (k) => `scheduled,strategy=learned,main=${k}`,
  influence: (k) => `scheduled,strategy=influence,main=${k}`,
};

/** Beside them at wait-3. */
const STUDY = {
  'TCTS without lengths': 'ablation,without=lengths',
  'TCTS without training losses': 'ablation,without=training',
  'TCTS without validation losses': 'ablation,without=validation',
  'TCTS without the step': 'ablation,without=step',
  annealing: 'strategies,strategy=annealing',
  'self-paced': 'strategies,strategy=self-paced',
  'half wait-3, half any': 'strategies,strategy=static-half',
  'MTL for two thirds, then wait-3': 'strategies,strategy=mtl-then-main',
  bandit: 'strategies,strategy=bandit',
  aligned: 'strategies,strategy=aligned',
  'influence, features shuffled': 'strategies,strategy=influence-shuffled',
  'window of 2 around wait-3': 'window',
};

const OTHER_TEXT = { 'en-vi': 'English→Vietnamese', europarl: 'Europarl, English→German' };
const STRATEGIES = { fixed: 'wait-k', mtl: 'MTL', curriculum: 'CL', learned: 'TCTS', influence: 'influence' };

/** Markdown with the tables of a page. */
export function tables(file, page) {
  const lines = new Lines(readLines(file));
  const pages = {
    multi30k: () => [mainTable(lines), differences(lines), study(lines), otherText(lines)],
    policies: () => [policies(lines)],
  };
  if (pages[page] === undefined)
    throw new Error(`there is no page ${page}, expected ${Object.keys(pages).join(' or ')}`);
  const counts = { table: 0, figure: 0 };
  const blocks = pages[page]().filter((table) => table.rows.length > 0);
  return [summary(lines), ...blocks.map((table) => markdownBlock({ kind: 'table', table }, counts))].join('\n\n');
}

/** Figures by setting, policy and seed. */
class Lines {
  constructor(lines) {
    this.all = lines.map((line) => {
      const [, setting, seed] = /^(.*),seed=(\d+)$/.exec(line.run);
      return { ...line, setting, seed: Number(seed) };
    });
  }

  /** The value of each seed. */
  of(setting, policy, figure = 'sacreBLEU') {
    const found = this.all.filter((line) => line.setting === setting && line.policy === policy);
    return new Map(found.map((line) => [line.seed, line[figure]]));
  }

  /** A mean over the seeds for a table, and how many if there are fewer than there should be. */
  cell(values, digits, seeds) {
    const found = seedEstimate([...values.values()], digits);
    if (found === undefined || found.n === seeds) return [found];
    return [{ ...found, note: `(${found.n} seed${found.n === 1 ? '' : 's'})` }];
  }
}

const SEEDS = 'Mean ± standard deviation over 5 seeds, or as many as are given.';
const DECODED = 'test_2016_flickr, greedy, parameters of the last update';

function mainTable(lines) {
  const names = Object.keys(METHODS);
  const rows = WAITS.map((k) => {
    const cells = names.map((name) => lines.cell(lines.of(METHODS[name](k), `wait-k:${k}`), 2, 5));
    const al = seedEstimate([...lines.of('all-waits', `wait-k:${k}`, 'AL').values()], 2);
    return { cells: [String(k), bestWait(lines, k), ...cells, [al]] };
  }).filter(({ cells }) => cells.slice(2, -1).some(([figure]) => figure !== undefined));
  const columns = names.map((title) => ({ title, measures: ['sacreBLEU'] }));
  const marked = markBestOfRows(
    rows.map(({ cells }) => ({ cells: cells.slice(0, -1) })),
    'higher',
  );
  return {
    id: 'multi30k-main',
    title: 'sacreBLEU by main task, the paper’s main table',
    caption: `${DECODED}. ${SEEDS} k*: the wait-m model with the lowest validation loss at wait-k, mean over its seeds. AL: SimulEval's, in words, of MTL. Bold: the best of a row.`,
    columns: [textColumn('k'), textColumn('k*'), ...columns, { title: 'AL', measures: ['AL'] }],
    rows: marked.map(({ cells }, i) => ({ cells: [...cells, rows[i].cells.at(-1)] })),
  };
}

/** The wait of the training that is best at wait-k on validation data. */
function bestWait(lines, k) {
  const place = WAITS.indexOf(k);
  const scored = WAITS.flatMap((m) => {
    const found = lines.all.filter(({ setting, k: own }) => setting === METHODS['wait-k'](m) && own === m);
    const losses = found.map((line) => Number(line['losses by wait'].split(' ')[place]));
    return losses.length === 0 ? [] : [{ m, loss: mean(losses) }];
  });
  return scored.length < WAITS.length ? '–' : String(scored.sort((a, b) => a.loss - b.loss)[0].m);
}

/** Differences over the seeds that both have, corrected together. */
function tested(pairs) {
  const found = pairs.flatMap(({ own, other, ...pair }) => {
    const seeds = [...own.keys()].filter((seed) => other.has(seed));
    if (seeds.length < 2) return [];
    const [a, b] = [own, other].map((values) => seeds.map((seed) => values.get(seed)));
    // Without evidence, influence is MTL to the last bit.
    const p = a.every((value, i) => value === b[i]) ? 1 : pairedTTest(a, b).p;
    return [{ ...pair, ...interval(a.map((value, i) => value - b[i])), seeds: seeds.length, p }];
  });
  const corrected = holm(found.map(({ p }) => p));
  return found.map((pair, i) => ({ ...pair, holm: corrected[i] }));
}

function differenceTable(found, first, about) {
  const rows = found.map(({ what, method, against, mean: difference, low, high, seeds, p, holm: corrected }) => ({
    cells: [
      ...[what, method, against].filter((text) => text !== undefined),
      signed(difference, 2),
      `${signed(low, 2)} to ${signed(high, 2)}`,
      String(seeds),
      formatP(p),
      formatP(corrected),
    ],
  }));
  const columns = [...first, 'sacreBLEU', '95 % interval', 'Seeds', 'p', 'p (Holm)'].map(textColumn);
  const caption = `Difference of sacreBLEU of the same seeds, paired t-test over the seeds, two-sided; p (Holm) is corrected for the ${found.length} comparisons of the table.`;
  return { ...about, caption, columns, rows };
}

function differences(lines) {
  const pairs = WAITS.flatMap((k) =>
    ['TCTS', 'influence'].flatMap((method) =>
      ['wait-k', 'CL', 'MTL'].map((against) => {
        const [own, other] = [method, against].map((name) => lines.of(METHODS[name](k), `wait-k:${k}`));
        return { what: `wait-${k}`, method, against, own, other };
      }),
    ),
  );
  const about = { id: 'multi30k-differences', title: 'Gains of scheduling' };
  return differenceTable(tested(pairs), ['Main task', 'Method', 'Against'], about);
}

function study(lines) {
  const mtl = lines.of('all-waits', 'wait-k:3');
  const whole = Object.entries(METHODS).map(([name, of]) => [name, of(3)]);
  const others = Object.entries(STUDY).filter(([, setting]) => lines.of(setting, 'wait-k:3').size > 0);
  if (others.length === 0) return { rows: [] };
  const all = [...whole, ...others];
  const found = tested(
    all
      .filter(([name]) => name !== 'MTL')
      .map(([method, setting]) => ({ method, own: lines.of(setting, 'wait-k:3'), other: mtl })),
  );
  const rows = all.map(([name, setting]) => {
    const values = ['sacreBLEU', 'chrF', 'validation loss'].map((figure) => lines.of(setting, 'wait-k:3', figure));
    // The loss in the log of MTL is that of another main task.
    const cells = values.map((own, i) =>
      i === 2 && name === 'MTL' ? [undefined] : lines.cell(own, i === 2 ? 4 : 2, name in METHODS ? 5 : 3),
    );
    const test = found.find(({ method }) => method === name);
    const against = test === undefined ? ['–', '–'] : [signed(test.mean, 2), formatP(test.holm)];
    return { cells: [name, ...cells, ...against] };
  });
  const figures = ['sacreBLEU', 'chrF', 'Validation loss'].map((title) => ({ title, measures: [title] }));
  return {
    id: 'multi30k-study',
    title: 'Features and strategies at wait-3',
    caption: `${DECODED}. Mean ± standard deviation over 5 seeds for the methods of table 1, 3 for the others, or as many as are given. p: paired t-test over seeds against MTL, corrected for ${found.length} comparisons.`,
    columns: [textColumn('Method'), ...figures, textColumn('− MTL'), textColumn('p (Holm)')],
    rows,
  };
}

function otherText(lines) {
  const rows = Object.entries(OTHER_TEXT).flatMap(([group, title]) =>
    Object.entries(STRATEGIES).flatMap(([strategy, name]) => {
      const setting = `${group},strategy=${strategy}`;
      const seeds = group === 'europarl' ? 1 : 3;
      const cells = ['sacreBLEU', 'chrF', 'AL'].map((figure) =>
        lines.cell(lines.of(setting, 'wait-k:3', figure), 2, seeds),
      );
      return cells[0][0] === undefined ? [] : [{ cells: [title, name, ...cells] }];
    }),
  );
  const figures = ['sacreBLEU', 'chrF', 'AL'].map((title) => ({ title, measures: [title] }));
  return {
    id: 'other-text',
    title: 'Other text, wait-3',
    caption: 'Mean ± standard deviation over 3 seeds; Europarl: one seed. Greedy, parameters of the last update.',
    columns: [textColumn('Text'), textColumn('Method'), ...figures],
    rows,
  };
}

/** Models and the policies that they are decoded with. */
const MODELS = {
  'all-waits': 'all waits (MTL)',
  'all-waits-further': 'all waits, 4 epochs more',
  sentences: 'whole sentences',
  monotonic: 'trained policy',
  itst: 'ITST',
  hmt: 'HMT',
};

function policies(lines) {
  const settings = [...new Set(lines.all.map(({ setting }) => setting))].filter((one) => one.split(',')[0] in MODELS);
  const order = Object.keys(MODELS);
  settings.sort((a, b) => order.indexOf(a.split(',')[0]) - order.indexOf(b.split(',')[0]));
  const rows = settings.flatMap((setting) => {
    const [group, ...labels] = setting.split(',');
    const own = lines.all.filter((line) => line.setting === setting);
    return [...new Set(own.map(({ policy }) => policy))].map((policy) => {
      const values = (figure) => [...lines.of(setting, policy, figure).values()];
      const cell = (figure, digits) => [seedEstimate(values(figure), digits)];
      const model = [MODELS[group], ...labels.map((label) => label.replace('=', ' '))].join(', ');
      const cells = [cell('sacreBLEU', 2), cell('chrF', 2), cell('AL', 2), cell('LAAL', 2), cell('YAAL', 2)];
      return { cells: [model, policy, ...cells, cell('length', 3), String(values('sacreBLEU').length)] };
    });
  });
  const figures = ['sacreBLEU', 'chrF', 'AL', 'LAAL', 'YAAL', 'Length'].map((title) => ({ title, measures: [title] }));
  return {
    id: 'policies',
    title: 'Policies',
    caption: `${DECODED}. Mean ± standard deviation over the seeds. AL, LAAL and YAAL: SimulEval's, in words. Length: words of the output over words of the references.`,
    columns: [textColumn('Model'), textColumn('Policy'), ...figures, textColumn('Seeds')],
    rows,
  };
}

function summary({ all }) {
  const runs = new Map(all.map((line) => [line.run, line['seconds of a core']]));
  const hours = [...runs.values()].reduce((sum, seconds) => sum + seconds, 0) / 3600;
  return `${runs.size} of the ${countRuns(loadGrid(shippedGrid))} runs of the plan, ${hours.toFixed(1)} hours of one core for their training.`;
}
