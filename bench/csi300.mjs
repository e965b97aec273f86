/**
 * The runs behind docs/results/csi300.md, one line of CSV as soon as each is done; lines that are there are not run again.
 *
 *     node bench/csi300.mjs docs/results/csi300-seeds.csv 'gru,mtl 3,curriculum 3,learned 3' 1 1-5 --data data/cn_data
 *
 * Arms: a model without other tasks, or a strategy with its number of tasks; then main tasks and seeds. Runs are made in
 * the folder `csi300-runs`, with one thread each, and continue where they were killed. `--part 1/2` beside `--part 2/2`
 * shares the lines between two processes. The tables of the page, printed or put between its marks:
 *
 *     node bench/csi300.mjs docs/results/csi300-seeds.csv --table
 *     node bench/csi300.mjs docs/results/csi300-seeds.csv --write docs/results/csi300.md
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { seedList } from '../dist/cli/sweep.js';
import { showTables } from './page-tables.mjs';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    data: { type: 'string' },
    part: { type: 'string', default: '1/1' },
    table: { type: 'boolean', default: false },
    write: { type: 'string' },
  },
});
const [file, arms, mains, seeds] = positionals;
if (file !== undefined && (values.table || values.write !== undefined)) {
  const { tables } = await import('./csi300-table.mjs');
  showTables(tables(file), values.write);
  process.exit(0);
}
if (seeds === undefined || values.data === undefined) {
  console.error("usage: node bench/csi300.mjs FILE 'gru,mtl 3' MAINS SEEDS --data FOLDER [--part 1/2], as 1-3 or 1,2");
  process.exit(1);
}

const tool = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const config = fileURLToPath(new URL('../configs/csi300.yaml', import.meta.url));
const FIGURES = ['RankIC', 'RankICIR', 'IC', 'ICIR', 'MSE', 'zMSE'];
const HEADER = ['arm', 'main', 'seed', 'updates', 'best', 'validation loss', ...FIGURES, 'seconds', 'RankIC by day'];

const done = () =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .map((line) => line.split(',', 3).join())
    : [];
if (!existsSync(file)) appendFileSync(file, `${HEADER.join()}\n`);

function tcts(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [tool, ...args], { encoding: 'utf8', maxBuffer: 1e9 });
  if (status !== 0) throw new Error(`tcts ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** The arm's part of the configuration. */
function settings(arm) {
  const [name, tasks] = arm.split(' ');
  if (tasks !== undefined) return ['--strategy', name, '--tasks', tasks];
  const model = ['--strategy', 'fixed', '--model', name];
  return name === 'trees' ? [...model, '--set', 'problem.model={name: trees, rounds: 150}'] : model;
}

const [part, parts] = values.part.split('/').map(Number);
let place = 0;
for (const seed of seedList(seeds)) {
  for (const main of seedList(mains)) {
    for (const arm of arms.split(',')) {
      if (place++ % parts !== part - 1 || done().includes([arm, main, seed].join())) continue;
      const run = join('csi300-runs', `${arm.replace(' ', '-')}-main${main}-seed${seed}`);
      const began = performance.now();
      if (!existsSync(join(run, 'result.json'))) {
        const name = ['--set', 'out=csi300-runs', '--set', `name=${run.split('/').at(-1)}`];
        const where = [
          '--set',
          `problem.data.path=${values.data}`,
          '--set',
          'workers=1',
          '--set',
          'problem.test=false',
        ];
        const start = existsSync(run)
          ? ['train', '--resume', run, '--quiet']
          : ['train', config, '--quiet', '--main', main, '--set', `seed=${seed}`, ...name, ...where, ...settings(arm)];
        tcts(...start.map(String));
      }
      const { updates, best } = JSON.parse(readFileSync(join(run, 'result.json'), 'utf8'));
      const { scores } = JSON.parse(tcts('evaluate', run, '--json', '--threads', '1'));
      const [head, ...days] = readFileSync(join(run, 'evaluation/test/daily.csv'), 'utf8').trim().split('\n');
      const column = head.split(',').indexOf('RankIC');
      const byDay = days.map((line) => Math.round(1e4 * Number(line.split(',')[column]))).join(' ');
      const figures = FIGURES.map((figure) => scores[figure].toFixed(5));
      const seconds = Math.round((performance.now() - began) / 1000);
      const loss = (-best.performance).toFixed(6);
      appendFileSync(file, `${[arm, main, seed, updates, best.update, loss, ...figures, seconds, byDay].join()}\n`);
      console.log(`${arm}, main ${main}, seed ${seed}: RankIC ${scores.RankIC.toFixed(4)}, ${seconds} s`);
    }
  }
}
