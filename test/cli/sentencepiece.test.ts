import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'tcts-spm-cli-'));
afterAll(() => rmSync(folder, { recursive: true }));

function tcts(args: readonly string[], input = '') {
  return spawnSync(process.execPath, [main, ...args], { cwd: folder, input, encoding: 'utf8' });
}

it('a corpus of SentencePiece models is prepared, trained, translated as a stream and in a batch, and exported', () => {
  const { models } = JSON.parse(readFileSync(new URL('../vectors/sentencepiece.json', import.meta.url), 'utf8')) as {
    models: Record<string, { model: string }>;
  };
  for (const name of ['uni', 'bpe']) {
    writeFileSync(join(folder, `${name}.model`), Buffer.from(models[name].model, 'base64'));
  }
  const words = ['the task', 'waits', 'and reads', 'a token', 'then', 'writes it'];
  const lines = Array.from({ length: 36 }, (_, i) => `${words[i % 6]} ${words[Math.floor(i / 6)]} ☃ end.`);
  for (const language of ['en', 'de']) writeFileSync(join(folder, `t.${language}`), `${lines.join('\n')}\n`);

  const languages = ['--source', 'en', '--target', 'de', '--train', 't', '--valid', 't', '--test', 't'];
  const prepared = tcts(['prepare', 'translate', ...languages, '--spm', 'uni.model', 'bpe.model', '--out', 'corpus']);
  expect(prepared.stderr).toBe('');
  // The snow man is unknown to the one, three bytes to the other.
  expect(prepared.stdout).toMatch(/unknown [1-9]\d?\.\d+ %/);
  expect(prepared.stdout).toContain('unknown 0.000 %');
  const settings = {
    name: 'run',
    problem: {
      ...{ kind: 'translation', data: { from: 'corpus', folder: 'corpus' }, waits: 3, main: 1 },
      ...{ model: { preset: 'tiny', width: 16, ffn: 16, heads: 2 }, learning: { warmup: 10 } },
    },
    ...{ strategy: { name: 'fixed' }, training: { episodes: 1, steps: 2 }, workers: 1 },
  };
  writeFileSync(join(folder, 'run.yaml'), JSON.stringify(settings));
  expect(tcts(['train', 'run.yaml', '--quiet']).stderr).toBe('');

  const options = ['runs/run', '--beam', '1', '--early-end', 'block'];
  writeFileSync(join(folder, 'few.en'), `${lines.slice(0, 3).join('\n')}\n`);
  const batch = tcts(['translate', ...options, '--input', 'few.en']);
  expect(batch).toMatchObject({ status: 0, stderr: '' });
  expect(tcts(['translate', ...options], `${lines.slice(0, 3).join('\n')}\n`).stdout).toBe(batch.stdout);
  expect(batch.stdout).not.toMatch(/▁|<0x/);
  expect(tcts(['export', 'runs/run', '--onnx', 'exported']).status).toBe(0);
  expect(existsSync(join(folder, 'exported', 'spm.de.model'))).toBe(true);

  const wrong = tcts(['prepare', 'translate', ...languages, '--spm', 't.en', '--out', 'other']);
  expect(wrong).toMatchObject({ status: 1, stdout: '' });
  expect(wrong.stderr).toMatch(/^tcts: t\.en: not a SentencePiece model/);
  expect(existsSync(join(folder, 'other'))).toBe(false);
});
