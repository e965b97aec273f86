import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomTranslationRun, type TranslationRun } from './translation-run.js';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

let run: TranslationRun;
beforeAll(async () => {
  run = await randomTranslationRun(8);
});
afterAll(() => run.remove());

function start(...args: string[]) {
  const child = spawn(process.execPath, [main, 'translate', ...args]);
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text;
  });
  const ended = once(child, 'close').then(([code]) => ({ code: code as number, ...output }));
  return { child, output, ended };
}

function translate(input: string | Uint8Array, ...args: string[]) {
  const { child, ended } = start(...args);
  child.stdin.end(input);
  return ended;
}

describe('tcts translate', () => {
  it('writes before the sentence has ended, whatever the pieces of the input', async () => {
    const { child, output, ended } = start(run.folder, '--k', '1', '--early-end', 'block', '--beam', '1');
    const [first, second, third] = run.sources[0].split(' ');
    child.stdin.write(`${first} ${second.slice(0, 1)}`);
    for (let i = 0; output.stdout === '' && i < 400; i++) await setTimeout(50);
    const early = output.stdout;
    expect(early.split(' ')).toHaveLength(1);
    expect(early).not.toContain('\n');
    child.stdin.write(`${second.slice(1)} `);
    for (let i = 0; output.stdout === early && i < 400; i++) await setTimeout(50);
    expect(output.stdout.split(' ')).toHaveLength(2);
    child.stdin.end(third);
    const { code, stdout, stderr } = await ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^\S.*\n$/);
    expect(stdout.startsWith(early)).toBe(true);
  });

  it.each([
    ['--k', '2'],
    ['--policy', 'wait-if-diff:initial=1'],
    ['--policy', 'adaptive:max=4'],
    ['--policy', 'alignatt:f=1,layer=1,heads=2'],
    ['--policy', 'edatt:alpha=.6'],
  ])('gives the same lines from standard input and from a file with %s %s', async (...policy) => {
    const lines = run.sources.slice(0, 5).toSpliced(2, 0, '');
    const file = join(run.scratch, 'input.txt');
    writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
    const streamed = await translate(lines.join('\n'), run.folder, ...policy);
    const batch = await translate('', run.folder, ...policy, '--input', file);
    expect(batch.stdout.split('\n')).toHaveLength(lines.length + 1);
    expect(streamed.stdout).toBe(batch.stdout);
  });

  it('traces every READ and WRITE', async () => {
    const source = run.sources[1].split(' ');
    const args = [run.folder, '--k', '3', '--trace', '--early-end', 'block', '--beam', '1'];
    const { stdout } = await translate(`${source.join(' ')}\n`, ...args);
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t'));
    expect(events.slice(0, 4).map(([action]) => action)).toEqual(['READ', 'READ', 'READ', 'WRITE']);
    expect(events.filter(([action]) => action === 'READ').map(([, token]) => token)).toEqual([...source, '</s>']);
    const written = events.filter(([action]) => action === 'WRITE').map(([, token]) => token);
    expect(events.at(-1)).toEqual(['TEXT', written.join(' ')]);
  });

  it('stops quietly when nobody reads its output any more', async () => {
    const { child, ended } = start(run.folder, '--trace');
    child.stdout.destroy();
    child.stdin.on('error', () => {});
    child.stdin.end(`${run.sources.slice(0, 40).join('\n')}\n`);
    const { code, stderr } = await ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  it('gives nothing for an empty stream', async () => {
    expect(await translate('', run.folder)).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it.each([
    ['a wait of 0', ['--k', '0'], '--k: expected a whole number of at least 1, found "0"'],
    ['several policies', ['--k', '2,3'], 'policy: expected one policy, found 2 in wait-k:2,3'],
    ['a policy twice', ['--k', '2', '--policy', 'adaptive'], '--policy: expected one policy, found several'],
    ['a beam that is no number', ['--beam', 'wide'], '--beam: expected a whole number of at least 1, found "wide"'],
  ])('refuses %s', async (_, flags, message) => {
    const { code, stderr } = await translate('', run.folder, ...flags);
    expect(code).toBe(1);
    expect(stderr.trim()).toBe(`tcts: ${message}`);
  });

  it('refuses a stream that ends in the middle of a character', async () => {
    const { code, stderr } = await translate(Buffer.from('aß').subarray(0, 2), run.folder);
    expect(code).toBe(1);
    expect(stderr).toContain('standard input:1: the text ends in the middle of a character');
  });

  it('translates the sentences around one that is too long for the model, and says where that stands', async () => {
    const [before, after] = run.sources;
    const lines = [before, 'a '.repeat(70).trim(), after];
    const file = join(run.scratch, 'long.txt');
    writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
    // Nothing is written of the long sentence, as all is read first.
    const policy = ['--policy', 'wait-k:full', '--beam', '1'];
    const expected = (await translate(`${before}\n\n${after}\n`, run.folder, ...policy)).stdout;
    expect(expected.split('\n').map((line) => line === '')).toEqual([false, true, false, true]);

    const batch = await translate('', run.folder, ...policy, '--input', file);
    expect(batch).toMatchObject({ code: 1, stdout: expected });
    expect(batch.stderr).toBe(
      `tcts: ${file}:2: the sentence has 71 tokens including its end, the model reads at most 64: it is left untranslated\n`,
    );
    const streamed = await translate(lines.join('\n'), run.folder, ...policy);
    expect(streamed).toMatchObject({ code: 1, stdout: expected });
    expect(streamed.stderr).toMatch(
      /^tcts: standard input:2: the sentence has 65 tokens including its end, .* 64: .*\n$/,
    );
  });

  it('translates what comes before bytes that are no text, and names the line of those', async () => {
    const good = `${run.sources[0]}\n${run.sources[1]}\n`;
    const expected = (await translate(good, run.folder, '--beam', '1')).stdout;
    const { code, stdout, stderr } = await translate(
      Buffer.concat([Buffer.from(good), Uint8Array.of(0x61, 0xff, 0x0a)]),
      ...[run.folder, '--beam', '1'],
    );
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: expected,
      stderr: 'tcts: standard input:3: the text is not UTF-8\n',
    });
  });

  it('translates the lines of a file around one that is no text', async () => {
    const [before, after] = run.sources;
    const file = join(run.scratch, 'bytes.txt');
    writeFileSync(
      file,
      Buffer.concat([Buffer.from(`${before}\n`), Uint8Array.of(0x61, 0xff, 0x0a), Buffer.from(after)]),
    );
    const expected = (await translate(`${before}\n\n${after}\n`, run.folder, '--beam', '1')).stdout;
    expect(await translate('', run.folder, '--beam', '1', '--input', file)).toEqual({
      code: 1,
      stdout: expected,
      stderr: `tcts: ${file}:2: the line is not UTF-8 text: it is left untranslated\n`,
    });
  });

  it('lists the n best translations of each line of a file, the first of which is the translation', async () => {
    const lines = run.sources.slice(0, 3);
    const file = join(run.scratch, 'nbest.txt');
    writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
    const args = [run.folder, '--policy', 'wait-k:full', '--beam', '3', '--length-penalty', '0.6', '--input', file];
    const single = (await translate('', ...args)).stdout.trimEnd().split('\n');
    const { code, stdout } = await translate('', ...args, '--nbest', '3');
    expect(code).toBe(0);
    const listed = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' ||| '));
    expect(listed.map(([number]) => Number(number))).toEqual([0, 0, 0, 1, 1, 1, 2, 2, 2]);
    for (const [i, line] of single.entries()) {
      const own = listed.slice(3 * i, 3 * i + 3);
      expect(own[0][1]).toBe(line);
      expect(new Set(own.map(([, text]) => text)).size).toBe(3);
      const scores = own.map(([, , score]) => Number(score));
      expect(scores).toEqual(scores.toSorted((a, b) => b - a));
    }
    expect((await translate('', ...args, '--nbest', '4')).stderr).toBe(
      'tcts: --nbest: expected at most the beam of 3, found 4\n',
    );
  });

  it('refuses a folder that is no run', async () => {
    const { code, stderr } = await translate('', run.scratch);
    expect(code).toBe(1);
    expect(stderr).toContain('not a run folder');
  });
});
