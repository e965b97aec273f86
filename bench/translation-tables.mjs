// The tables of docs/results/multi30k.md and policies.md from the lines of docs/results/translation.csv.
import { holm, interval, mean, pairedTTest } from '../dist/metrics/index.js';
import { formatP, markBestOfRows, seedEstimate, signed, textColumn } from '../dist/report/document.js';
import { markdownBlock } from '../dist/report/files.js';
import { countRuns, loadGrid } from '../dist/sweep/index.js';
import { readLines, shippedGrid, WAITS } from './translation-lines.mjs';

/** The methods of the main table, by group and what the grid varies in it; undefined: not known yet. */
const METHODS = {
  'wait-k': (k) => `wait,main=${k}`,
  'wait-k*': (k, lines) => lines.bestWait(k) && `wait,main=${lines.bestWait(k)}`,
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
  'TCTS, η₂ × 8': 'strategies,strategy=learned-fast',
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
    multi30k: () => [mainTable(lines), lossTable(lines), differences(lines), study(lines), otherText(lines)],
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
    return new Map(found.map((line) => [line.seed, line[figure]]).filter(([, value]) => !Number.isNaN(value)));
  }

  /** The wait of the training that is best at wait-k on validation data, once there is one for every wait. */
  bestWait(k) {
    const scored = WAITS.map((m) => {
      const own = this.all.filter((line) => line.setting === METHODS['wait-k'](m) && line.k === m);
      return { m, loss: mean(own.map((line) => Number(line['losses by wait'].split(' ')[WAITS.indexOf(k)]))) };
    });
    return scored.some(({ loss }) => Number.isNaN(loss)) ? undefined : scored.sort((a, b) => a.loss - b.loss)[0].m;
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
  const table = byMainTask(lines, 'sacreBLEU', 2, 'higher');
  const latencies = new Map(
    WAITS.map((k) => [String(k), seedEstimate([...lines.of('all-waits', `wait-k:${k}`, 'AL').values()], 2)]),
  );
  const rows = table.rows.map(({ cells: [k, ...figures] }) => ({
    cells: [k, String(lines.bestWait(Number(k)) ?? '–'), ...figures, [latencies.get(k)]],
  }));
  const [first, ...methods] = table.columns;
  return {
    id: 'multi30k-main',
    title: 'sacreBLEU by main task, the paper’s main table',
    caption: `${DECODED}. ${SEEDS} k*: the wait-m model with the lowest validation loss at wait-k, mean over its seeds. AL: SimulEval's, in words, of MTL. Bold: the best of a row.`,
    columns: [first, textColumn('k*'), ...methods, { title: 'AL', measures: ['AL'] }],
    rows,
  };
}

function lossTable(lines) {
  return {
    id: 'multi30k-loss',
    title: 'Test loss by main task',
    caption: `−log P of the references under wait-k, in nats per token, of the same models. ${SEEDS} Bold: the best of a row.`,
    ...byMainTask(lines, 'test loss', 4, 'lower'),
  };
}

/** A figure of every method at the wait of its main task. */
function byMainTask(lines, figure, digits, better) {
  const names = Object.keys(METHODS);
  const rows = WAITS.map((k) => {
    const cells = names.map((name) => lines.cell(lines.of(METHODS[name](k, lines), `wait-k:${k}`, figure), digits, 5));
    return { cells: [String(k), ...cells] };
  }).filter(({ cells }) => cells.slice(1).some(([value]) => value !== undefined));
  const columns = names.map((title) => ({ title, measures: [figure] }));
  const marked = rows.map((row) => (hasAllSeeds(row) ? markBestOfRows([row], better)[0] : row));
  return { columns: [textColumn('k'), ...columns], rows: marked };
}

/** Otherwise a method may look best because its seeds are easy ones. */
const hasAllSeeds = ({ cells }) => cells.slice(1).every(([value]) => value !== undefined && value.note === undefined);

/** Differences of a figure over the seeds that both have, corrected together. */
function tested(lines, pairs, figure) {
  const found = pairs.flatMap(({ own, other, policy, ...pair }) => {
    const [ours, theirs] = [own, other].map((setting) => lines.of(setting, policy, figure));
    const seeds = [...ours.keys()].filter((seed) => theirs.has(seed));
    if (seeds.length < 2) return [];
    const [a, b] = [ours, theirs].map((values) => seeds.map((seed) => values.get(seed)));
    // Without evidence, influence is MTL to the last bit.
    const p = a.every((value, i) => value === b[i]) ? 1 : pairedTTest(a, b).p;
    return [{ ...pair, ...interval(a.map((value, i) => value - b[i])), seeds: seeds.length, p }];
  });
  const corrected = holm(found.map(({ p }) => p));
  return found.map((pair, i) => ({ ...pair, holm: corrected[i] }));
}

function differences(lines) {
  const pairs = WAITS.flatMap((k) =>
    ['TCTS', 'influence'].flatMap((method) =>
      ['wait-k', 'CL', 'MTL'].map((against) => {
        const [own, other] = [method, against].map((name) => METHODS[name](k));
        return { key: `${k} ${method} ${against}`, k, method, against, own, other, policy: `wait-k:${k}` };
      }),
    ),
  );
  const bleu = tested(lines, pairs, 'sacreBLEU');
  const loss = new Map(tested(lines, pairs, 'test loss').map((found) => [found.key, found]));
  const rows = bleu.map(({ key, k, method, against, seeds, ...found }) => ({
    cells: [
      ...[`wait-${k}`, method, against, String(seeds)],
      ...differenceCells(found, 2),
      ...differenceCells(loss.get(key), 4),
    ],
  }));
  const columns = ['sacreBLEU', 'p', 'p (Holm)', 'Test loss', 'p', 'p (Holm)'];
  return {
    id: 'multi30k-differences',
    title: 'Gains of scheduling',
    caption: `Differences within seeds with their 95 % intervals: of sacreBLEU, where more is better, and of the test loss, where less is. Paired t-tests over the seeds, two-sided; p (Holm) is corrected for the ${bleu.length} comparisons of the column.`,
    columns: ['Main task', 'Method', 'Against', 'Seeds', ...columns].map(textColumn),
    rows,
  };
}

/** A difference with its interval, p, and p corrected. */
function differenceCells(found, digits) {
  if (found === undefined) return ['–', '–', '–'];
  const range = `${signed(found.low, digits)} to ${signed(found.high, digits)}`;
  return [`${signed(found.mean, digits)} (${range})`, formatP(found.p), formatP(found.holm)];
}

function study(lines) {
  const whole = Object.entries(METHODS)
    .filter(([method]) => method !== 'wait-k*')
    .map(([method, of]) => ({ method, own: of(3, lines), seeds: 5 }));
  const others = Object.entries(STUDY)
    .filter(([, setting]) => lines.of(setting, 'wait-k:3').size > 0)
    .map(([method, own]) => ({ method, own, seeds: 3 }));
  if (others.length === 0) return { rows: [] };
  const pairs = [...whole, ...others]
    .filter(({ method }) => method !== 'MTL')
    .map((pair) => ({ ...pair, other: METHODS.MTL(), policy: 'wait-k:3' }));
  const tests = new Map(tested(lines, pairs, 'test loss').map((found) => [found.method, found]));
  const rows = [...whole, ...others].map(({ method, own, seeds }) => {
    const cell = (figure, digits) => lines.cell(lines.of(own, 'wait-k:3', figure), digits, seeds);
    const found = tests.get(method);
    const against = found === undefined ? ['–', '–'] : [signed(found.mean, 4), formatP(found.holm)];
    return { cells: [method, cell('sacreBLEU', 2), cell('chrF', 2), cell('test loss', 4), ...against] };
  });
  const figures = ['sacreBLEU', 'chrF', 'Test loss'].map((title) => ({ title, measures: [title] }));
  return {
    id: 'multi30k-study',
    title: 'Features and strategies at wait-3',
    caption: `${DECODED}. Mean ± standard deviation over 5 seeds for the methods of table 1, 3 for the others, or as many as are given. − MTL: of the test loss, within seeds; paired t-test, corrected for ${tests.size} comparisons.`,
    columns: [textColumn('Method'), ...figures, textColumn('− MTL'), textColumn('p (Holm)')],
    rows,
  };
}

function otherText(lines) {
  const rows = Object.entries(OTHER_TEXT).flatMap(([group, title]) =>
    Object.entries(STRATEGIES).flatMap(([strategy, name]) => {
      const setting = `${group},strategy=${strategy}`;
      const cells = ['sacreBLEU', 'chrF', 'AL', 'test loss'].map((figure) =>
        lines.cell(lines.of(setting, 'wait-k:3', figure), figure === 'test loss' ? 4 : 2, 1),
      );
      return cells[0][0] === undefined ? [] : [{ cells: [title, name, ...cells] }];
    }),
  );
  const figures = ['sacreBLEU', 'chrF', 'AL', 'Test loss'].map((title) => ({ title, measures: [title] }));
  return {
    id: 'other-text',
    title: 'Other text, wait-3',
    caption: 'One seed. Greedy, parameters of the last update.',
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
