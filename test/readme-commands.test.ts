import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Random } from '../src/random.js';
import { toyText } from '../src/translate/toy.js';
import { argumentsOf, commandsIn, runCommand } from './commands.js';
import { stockFiles, writeFiles } from './forecast/panels.js';
import { temporaryFolder } from './run/temporary.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const readme = readFileSync(join(root, 'README.md'), 'utf8');

const commands = commandsIn(readme);

const few = (...more: string[]): string[] =>
  ['training.episodes=1', 'training.steps=2', ...more].flatMap((one) => ['--set', one]);

/** What makes a long training short, and lets a port be any that is free; nothing else is changed of any command. */
const ADDED: Readonly<Record<string, readonly string[]>> = {
  'tcts train market': few(),
  'tcts train csi300': few(),
  'tcts train verb-final': few('problem.data.pairs=200'),
  'tcts train multi30k': few(
    'problem.batch.tokens=200',
    'problem.model.encoderLayers=1',
    'problem.model.decoderLayers=1',
  ),
  'tcts reproduce': ['--seeds', '1', ...few('problem.data.stocks=20', 'problem.features.window=3')],
  'tcts sweep': few('problem.data.stocks=20', 'problem.features.window=3'),
  'tcts serve': ['--port', '0'],
};

const shortened = (command: string): string[] => {
  const [, added = []] = Object.entries(ADDED).find(([begin]) => command.startsWith(begin)) ?? [];
  return [...argumentsOf(command), ...added];
};

/** A clone after `npm run build`, as far as the commands need it, with small stand-ins for the data that they name. */
function workingFolder(): string {
  const folder = temporaryFolder();
  symlinkSync(join(root, 'configs'), join(folder, 'configs'));
  writeFileSync(join(folder, 'hyp.txt'), 'the cat sat on the mat\n');
  writeFileSync(join(folder, 'ref.txt'), 'the cat sat on a mat\n');

  const days: string[] = [];
  for (let day = Date.parse('2007-06-01'); day <= Date.parse('2021-12-31'); day += 864e5) {
    if (new Date(day).getUTCDay() % 6 !== 0) days.push(new Date(day).toISOString().slice(0, 10));
  }
  const random = new Random(1);
  const walk = (): number[] => {
    let price = 10;
    return days.map(() => (price *= Math.exp(0.02 * (random.uniform() - 0.5))));
  };
  const stocks = ['sh600000', 'sh600001', 'sh600002', 'sh600003', 'sh600004', 'sh600005'];
  const listed = (codes: readonly string[]): string =>
    codes.map((code) => `${code.toUpperCase()}\t${days[0]}\t${days.at(-1)}\n`).join('');
  writeFiles(join(folder, 'cn_data'), {
    'calendars/day.txt': `${days.join('\n')}\n`,
    'instruments/all.txt': listed([...stocks, 'sh000300']),
    'instruments/csi300.txt': listed(stocks),
    ...Object.assign({}, ...[...stocks, 'sh000300'].map((code) => stockFiles(code, 0, walk()))),
  });

  mkdirSync(join(folder, 'DIR'));
  const text = toyText(1, { train: 400 });
  for (const [name, part] of [
    ['train', 'train'],
    ['val', 'valid'],
    ['test', 'test'],
  ] as const) {
    for (const [language, side] of [
      ['en', 'source'],
      ['de', 'target'],
    ] as const) {
      writeFileSync(join(folder, 'DIR', `${name}.${language}`), text[part].map((pair) => `${pair[side]}\n`).join(''));
    }
  }
  return folder;
}

describe('the commands of the README', () => {
  it('are there', () => {
    expect(commands.length).toBeGreaterThan(15);
    for (const begin of Object.keys(ADDED)) {
      expect(
        commands.some((command) => command.startsWith(begin)),
        begin,
      ).toBe(true);
    }
  });

  it('run one after the other in one folder', { timeout: 600_000 }, async () => {
    const folder = workingFolder();
    for (const command of commands) {
      const { code, stderr } = await runCommand(folder, shortened(command));
      expect({ command, code, stderr: code === 0 ? '' : stderr }).toEqual({ command, code: 0, stderr: '' });
    }
  });
});
