import type { Command } from 'commander';
import { afterEach, expect, test, vi } from 'vitest';
import { program } from '../../src/cli/program.js';
import { fittedHelp } from '../../src/cli/terminal.js';

afterEach(() => vi.restoreAllMocks());

const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)];

test('the help of every verb fits 80 columns, up to examples that one copies', () => {
  const written: string[] = [];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  for (const command of all(program())) command.outputHelp();
  const lines = written.join('').split('\n');
  expect(lines.length).toBeGreaterThan(300);
  expect(lines.filter((line) => line.length > 80 && !/^ {2}.*\b(tcts|simuleval) /.test(line))).toEqual([]);
});

test('prose is filled anew, explanations go on below their beginning, short lines and examples stay', () => {
  const word = 'abcdefghi'; // nine letters and a space: eight words fill 79 characters
  const long = Array(10).fill(word).join(' ');
  expect(fittedHelp(`${long}\n${word}\n\n  term  ${word}\n`)).toBe(
    `${Array(8).fill(word).join(' ')}\n${Array(3).fill(word).join(' ')}\n\n  term  ${word}\n`,
  );
  expect(fittedHelp(`  term  ${long}`)).toBe(
    `  term  ${Array(7).fill(word).join(' ')}\n        ${Array(3).fill(word).join(' ')}`,
  );
  expect(fittedHelp(`  tcts train ${long}`)).toBe(`  tcts train ${long}`);
  expect(fittedHelp('one\ntwo')).toBe('one\ntwo');
});
