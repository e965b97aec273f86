import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Translator } from '../../src/translate/decode/translator.js';
import { randomTextRun, randomTranslationRun, type TranslationRun } from './translation-run.js';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const SCRIPT = '/usr/bin/script';

describe.skipIf(!existsSync(SCRIPT))('tcts translate in a terminal', () => {
  let run: TranslationRun;
  beforeAll(async () => {
    run = await randomTranslationRun(4);
  });
  afterAll(() => run.remove());

  /** The tool behind a pseudo-terminal: what is typed, one key after the other, and the screen that comes of it. */
  async function typing(
    keys: readonly string[],
    { folder } = run,
  ): Promise<{ code: number | null; shown: string; after: string[] }> {
    const command = `${process.execPath} ${main} translate ${folder} --k 1 --beam 1`;
    const child = spawn(SCRIPT, ['-qec', command, '/dev/null'], {
      env: { ...process.env, TERM: 'xterm', NO_COLOR: '1' },
    });
    let shown = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
    const closed = once(child, 'close') as Promise<[number | null]>;
    while (!shown.includes('> ')) await sleep(20);
    const after: string[] = [];
    for (const key of keys) {
      const before = shown.length;
      child.stdin.write(key);
      while (shown.length === before && child.exitCode === null) await sleep(20);
      await sleep(150);
      after.push(plain(shown.slice(before)));
    }
    const [code] = await closed;
    return { code, shown, after };
  }

  it('translates each word when its space is typed, and marks unknown ones', { timeout: 60_000 }, async () => {
    const translator = await Translator.open(run.folder, { beam: 1 });
    const [word] = translator.source.vocabulary.tokens.filter((token) => /^[a-z]+$/.test(token));
    const stream = translator.stream(translator.policy('wait-k:1'), { beam: 1 });
    const first = (await stream.push(word)).trim();
    const rest = await stream.end();
    await translator.close();

    const keys = [word, ' ', 'qqq', ' ', '\x7f', '\x7f', '\x7f', '\x7f', '\r', '\x03'];
    const { code, shown, after } = await typing(keys);
    expect(code).toBe(0);
    expect(shown).toContain('wait-k:1: each word is translated when its space is typed');
    expect(shown).toContain('For example:');
    // Nothing before the space, the first word of the translation after it.
    expect(after[0]).not.toContain(first);
    expect(after[1]).toContain(`> ${word}`);
    expect(after[1]).toContain(first);
    expect(after[2]).not.toContain('unknown to the model');
    expect(after[3]).toContain('unknown to the model: qqq');
    // The unknown word is deleted again: the sentence ends as if it had never been typed.
    expect(after[8]).toContain(`> ${word}\n  ${first}${rest}`.trimEnd());
    expect(after[8]).not.toContain('unknown');
  });

  it('translates each character when it is typed, if the source has no spaces', { timeout: 60_000 }, async () => {
    const text = (language: string, kind: 'char' | 'none') =>
      ({ language, lowercase: false, normalize: false, tokenizer: { kind } }) as const;
    const pairs = [
      ['我们喜欢猫', 'we like cats'],
      ['他们有狗', 'they have dogs'],
    ] as const;
    const chinese = await randomTextRun(4, pairs, { source: text('zh', 'char'), target: text('en', 'none') });
    try {
      const translator = await Translator.open(chinese.folder, { beam: 1 });
      const stream = translator.stream(translator.policy('wait-k:1'), { beam: 1 });
      const pieces: string[] = [];
      for (const [i, word] of Array.from('我们').entries()) pieces.push(await stream.push(word, i > 0));
      const rest = await stream.end();
      await translator.close();
      expect(pieces[0]).toMatch(/\S/);

      const { shown, after } = await typing(['我', '们', '马', '\x7f', '\r', '\x03'], chinese);
      expect(shown).toContain('each character is translated when it is typed');
      expect(after[0]).toContain(`> 我\n  ${pieces[0].trim()}`);
      expect(after[1]).toContain(`> 我们\n  ${(pieces[0] + pieces[1]).trim()}`);
      expect(after[1]).not.toContain('unknown');
      expect(after[2]).toContain('unknown to the model: 马');
      expect(after[4]).toContain(`> 我们\n  ${pieces.join('')}${rest}`.trimEnd());
    } finally {
      chinese.remove();
    }
  });

  it('takes in two sentences that are pasted at once, and ends with Ctrl-D', { timeout: 60_000 }, async () => {
    const translator = await Translator.open(run.folder, { beam: 1 });
    const lines = run.sources.slice(0, 2);
    const [one, two] = await translator.lines(lines, translator.policy('wait-k:1'), { beam: 1 });
    await translator.close();
    const { code, after } = await typing([`${lines.join('\r')}\r`, '\x04']);
    expect(code).toBe(0);
    expect(after[0]).toContain(`> ${lines[0]}\n  ${one}\n`);
    expect(after[0]).toContain(`> ${lines[1]}\n  ${two}\n`);
    // Not once for every character.
    expect(drawings(after[0])).toBeLessThan(12);
  });
});

/** Times that the prompt was drawn. */
const drawings = (text: string): number => text.split('> ').length - 1;

/** The text without what moves the cursor. */
function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the control character begins every such sequence
  return text.replaceAll(/\x1b\[[0-9;?]*[A-Za-z]/g, '').replaceAll('\r', '');
}
