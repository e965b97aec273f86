import { execFile, spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startAgent } from '../../src/serve/simuleval.js';
import { evaluateTranslation } from '../../src/translate/evaluate.js';
import type { PipelineConfig } from '../../src/translate/text/pipeline.js';
import { temporaryFolder } from '../run/temporary.js';
import { scoreJson } from './score-run.js';
import { tcts } from './train-process.js';
import { randomTextRun, type TextRun } from './translation-run.js';

const MEASURES = ['AL', 'LAAL', 'AP', 'DAL'] as const;

interface Instance {
  readonly prediction: string;
  readonly delays: number[];
  readonly elapsed: number[];
  readonly source: string;
  readonly reference: string;
}
interface Vector {
  readonly scores: Readonly<Record<string, number>>;
  readonly instances: readonly Instance[];
}
const vectors = JSON.parse(readFileSync(new URL('../vectors/simuleval.json', import.meta.url), 'utf8')) as Record<
  'word' | 'char',
  Vector
>;

/** Of a log, with and without its times, under SimulEval's names. */
async function ourScores(log: string): Promise<Record<string, number>> {
  const plain = await scoreJson<Record<string, number>>('latency', log);
  const aware = await scoreJson<Record<string, number>>('latency', log, '--computation-aware');
  const named = MEASURES.map((name) => ({ [name]: plain[name], [`${name}_CA`]: aware[name] }));
  return Object.assign({}, ...named);
}

/** SimulEval prints three digits. */
function expectEqual(ours: Readonly<Record<string, number>>, theirs: (name: string) => number): void {
  for (const [name, value] of Object.entries(ours)) {
    expect(Math.abs(value - theirs(name)), `${name} ${value}`).toBeLessThanOrEqual(0.000501);
  }
}

function isInstalled(): boolean {
  return spawnSync('simuleval', ['--help']).error === undefined;
}

function instancesIn(folder: string): Instance[] {
  const lines = readFileSync(join(folder, 'instances.log'), 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line));
}

let run: TextRun;
beforeAll(async () => {
  const words = (language: string): PipelineConfig => ({
    ...{ language, lowercase: false, normalize: false },
    tokenizer: { kind: 'none' },
  });
  const lines = [
    'the dog saw the cat today',
    'a man with a hat',
    'they waited and waited',
    'one',
    'we read an old book',
  ];
  const pairs = lines.map((line) => [line, line.split(' ').reverse().join(' ')] as const);
  run = await randomTextRun(5, pairs, { source: words('en'), target: words('de') });
});
afterAll(() => run.remove());

describe('SimulEval and tcts', () => {
  it.each(['word', 'char'] as const)('agree on the latency of a log with its times, in units of %s', async (unit) => {
    const { scores, instances } = vectors[unit];
    const log = join(temporaryFolder(), 'instances.log');
    writeFileSync(log, instances.map((instance) => `${JSON.stringify(instance)}\n`).join(''));
    expectEqual(await ourScores(log), (name) => scores[name]);
  });

  it('agree on what tcts evaluate leaves, where the real one is installed', async ({ skip }) => {
    if (!isInstalled()) skip('there is no simuleval on the PATH');
    const [{ folder }] = await evaluateTranslation(run.folder, { policies: ['wait-k:2'], computationAware: 30 });
    const copy = join(temporaryFolder(), 'output');
    cpSync(folder, copy, { recursive: true });
    const flags = ['--score-only', '--computation-aware', '--output', copy];
    const metrics = ['--quality-metrics', 'BLEU', '--latency-metrics', ...MEASURES];
    const { stdout } = spawnSync('simuleval', [...flags, ...metrics], { encoding: 'utf8' });
    const [names, [, ...values]] = stdout
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/));
    expectEqual(await ourScores(join(copy, 'instances.log')), (name) => Number(values[names.indexOf(name)]));
  }, 60_000);

  it('agree on the words and delays of a remote agent, where the real one is installed', async ({ skip }) => {
    if (!isInstalled()) skip('there is no simuleval on the PATH');
    const [{ folder, latency }] = await evaluateTranslation(run.folder, { policies: ['wait-k:2'], beam: 1 });
    const evaluated = instancesIn(folder);
    const remote = temporaryFolder();
    const texts = ['source', 'reference'].map((side) => {
      const file = join(remote, side);
      writeFileSync(file, evaluated.map((instance) => `${instance[side as 'source' | 'reference']}\n`).join(''));
      return file;
    });
    const agent = await startAgent({ run: run.folder, port: 0, policy: 'wait-k:2' });
    try {
      const flags = [
        '--remote-eval',
        '--remote-port',
        new URL(agent.url).port,
        '--source-type',
        'text',
        '--target-type',
        'text',
      ];
      const files = ['--source', texts[0], '--target', texts[1], '--output', join(remote, 'output')];
      // In a process beside this one, which answers it.
      await promisify(execFile)('simuleval', [...flags, ...files, '--latency-metrics', ...MEASURES, 'ATD']);
    } finally {
      await agent.close();
    }
    const heard = instancesIn(join(remote, 'output'));
    const words = ({ prediction, delays }: Instance) => [prediction.trim(), delays];
    expect(heard.map(words)).toEqual(evaluated.map(words));
    const [names, values] = readFileSync(join(remote, 'output/scores.tsv'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split('\t'));
    for (const name of [...MEASURES, 'ATD'] as const) {
      expect(Math.abs(latency.simuleval![name] - Number(values[names.indexOf(name)])), name).toBeLessThanOrEqual(
        0.000501,
      );
    }
  }, 60_000);
});

describe('computation-aware latency', () => {
  it('is recorded sentence by sentence, with the tokens and delays of a batch', async () => {
    for (const [beam, policy] of [
      [1, 'wait-k:2'],
      [3, 'wait-k:1'],
      [2, 'wait-if-diff:initial=1,step=1'],
    ] as const) {
      const evaluate = async (computationAware?: number) => {
        const [scores] = await evaluateTranslation(run.folder, { policies: [policy], beam, computationAware });
        return { scores, instances: instancesIn(scores.folder) };
      };
      const batch = await evaluate();
      expect(batch.scores).not.toHaveProperty('computationAware');
      const { scores, instances } = await evaluate(1e9);
      expect(instances.map(({ elapsed: _, ...rest }) => rest)).toEqual(
        batch.instances.map(({ elapsed: _, ...rest }) => rest),
      );
      // Words that last for days: computing takes some time, but nothing in comparison.
      for (const { delays, elapsed } of instances) {
        elapsed.forEach((time, i) => {
          expect(time).toBeGreaterThan(delays[i]);
          expect(time).toBeCloseTo(delays[i], 4);
        });
        expect(elapsed).toEqual(elapsed.toSorted((a, b) => a - b));
      }
      expect(scores.computationAware?.latency?.AL).toBeCloseTo(scores.latency.simuleval!.AL, 4);
    }
  });

  it('comes with tcts evaluate, which says where it has none', async () => {
    const aware = await tcts(run.folder, 'evaluate', '.', '--k', '2', '--all', '--computation-aware', '0.01');
    expect(aware).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/AP_CA +AL_CA[\s\S]*a source word lasts 0.01 ms/),
    });
    const { latency } = JSON.parse(
      readFileSync(join(run.folder, 'evaluation/test-wait-2-beam-5/scores.json'), 'utf8'),
    ).computationAware;
    // A source of 0.05 ms is over before the first word: nothing is left but computation time.
    expect(latency.AL).toBeGreaterThan(6);
    const plain = await tcts(run.folder, 'evaluate', '.', '--k', '2', '--all');
    expect(plain.stdout).toContain('No computation-aware latency: sentences were translated together');
    const log = join(run.folder, 'evaluation/test-wait-2-beam-5/instances.log');
    await expect(scoreJson('latency', log, '--computation-aware')).rejects.toThrow(
      'needs elapsed times, but none are recorded',
    );
    const wrong = await tcts(run.folder, 'evaluate', '.', '--computation-aware', '0');
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('--computation-aware: expected a number') });
  }, 60_000);
});
