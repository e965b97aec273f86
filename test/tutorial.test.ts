import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { syntheticMarket, writeCsv } from '../src/forecast/index.js';
import { argumentsOf, commandsIn, filesIn, runCommand } from './commands.js';
import { temporaryFolder } from './run/temporary.js';

const file = fileURLToPath(new URL('../docs/tutorials/forecast.md', import.meta.url));
const page = readFileSync(file, 'utf8');
const commands = commandsIn(page);

/** What makes trainings short, two seeds among them; nothing else is changed of any command. */
const SHORT = [
  'training.episodes=1',
  'training.steps=2',
  'problem.features.window=3',
  'problem.model.hidden=2',
  'threads=1',
];
const shortened = (command: string): string[] => [
  ...argumentsOf(command),
  ...(command.startsWith('tcts train') ? SHORT.flatMap((one) => ['--set', one]) : []),
  ...(command.includes('problem.seeds') ? ['--set', 'problem.seeds=2'] : []),
];

describe('the tutorial on forecasting', () => {
  it('has about ten commands, and links to pages that exist', () => {
    const verbs = commands.map((command) => command.split(' ')[1]).join(' ');
    expect(verbs).toBe('init train evaluate evaluate train evaluate report evaluate forecast');
    const links = [...page.matchAll(/\]\(([^)#]+)/g)].map(([, path]) => join(dirname(file), path));
    expect(links.filter((path) => !existsSync(path))).toEqual([]);
  });

  it('runs as written', { timeout: 600_000 }, async () => {
    const folder = temporaryFolder();
    const market = syntheticMarket({ stocks: 12, days: 1240, strength: 0.6, start: '2017-01-02' });
    writeCsv(market, join(folder, 'all.csv'), join(folder, 'members'));
    const [, ...rows] = readFileSync(join(folder, 'all.csv'), 'utf8').trim().split('\n');
    const csv = (kept: readonly string[]) => ['Date,Ticker,Open,High,Low,Close,Volume', ...kept].join('\n');
    writeFileSync(join(folder, 'prices.csv'), csv(rows.filter((row) => row < '2021-07-01')));
    writeFileSync(join(folder, 'new.csv'), csv(rows.filter((row) => row >= '2021-06-01')));
    for (const [name, text] of Object.entries(filesIn(page))) writeFileSync(join(folder, name), text);
    const said: string[] = [];
    for (const command of commands) {
      const { code, stdout, stderr } = await runCommand(folder, shortened(command));
      expect({ command, code, stderr: code === 0 ? '' : stderr }).toEqual({ command, code: 0, stderr: '' });
      said.push(stdout);
    }
    // What the page says of them.
    expect(said[3]).toMatch(/backtest \(top 5, 2 replaced a day\)/);
    expect(said[5].match(/ {2}20\d\d-\d\d-\d\d to 20/g)).toHaveLength(2);
    expect(existsSync(join(folder, 'runs/report/index.html'))).toBe(true);
    const report = readFileSync(join(folder, 'runs/report/report.md'), 'utf8');
    expect(
      report.match(/^\| GRU .*\| Task-1 \| 20[\d-]+ to 20[\d-]+ \| 20[\d-]+ to 20[\d-]+ \| \d+ \|/gm),
    ).toHaveLength(2);
    expect(report).toMatch(/RankIC over time[\s\S]*Dotted lines: where the windows of the walk-forward begin/);
    expect(report).not.toMatch(/could not be read/);
    const [name] = readdirSync(join(folder, 'runs/report/figures')).filter((one) => one.endsWith('rank-ic-task-1.svg'));
    const figure = readFileSync(join(folder, 'runs/report/figures', name), 'utf8');
    const [, rules = ''] = /<g stroke-dasharray="2 3"[^>]*aria-label="rule">([\s\S]*?)<\/g>/.exec(figure) ?? [];
    expect(rules.match(/<line/g)).toHaveLength(2);
    expect(said[7]).toMatch(/^2021-07-01 to 2021-10-01 of new\.csv \(not the run's own\)/);
    const [head, first] = readFileSync(join(folder, 'forecasts.csv'), 'utf8').split('\n');
    expect(head).toBe('date,instrument,prediction,rank,spread');
    expect(first).toMatch(/^2021-09-01,S\d+,[\d.]+,1,/);
  });
});
