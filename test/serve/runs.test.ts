import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createRun, membersJson } from '../../src/run/index.js';
import type { RunReport, RunSummary } from '../../src/serve/run-report.js';
import { type PageServer, startServer } from '../../src/serve/server.js';
import { forecastScores, latencyScores, translationScores } from './evaluations.js';

let root: string;
let server: PageServer;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'tcts-runs-'));
  server = await startServer({ folder: root, port: 0 });
});

afterEach(() => {
  for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true });
});

afterAll(async () => {
  await server.close();
  rmSync(root, { recursive: true });
});

/** A run in the middle of its training. */
function startRun(name: string) {
  const config = { seed: 1, problem: { kind: 'forecast' }, strategy: { name: 'learned' } };
  const run = createRun(join(root, name), { config, seed: 1, command: ['tcts'] });
  writeFileSync(
    join(run.path, 'metrics.jsonl'),
    [
      { step: 5, loss: 2 },
      { step: 10, episode: 1, performance: -2, reward: 1, loss: 1.9, distribution: { a: 0.25, b: 0.75 }, entropy: 0.5 },
      { step: 20, episode: 2, performance: -1.5, reward: 0.5, loss: 1.7, distribution: { a: 1, b: 0 }, entropy: 0 },
    ]
      .map((record) => `${JSON.stringify(record)}\n`)
      .join(''),
  );
  return run;
}

const get = async <T>(path: string): Promise<T> => (await fetch(server.url + path)).json() as Promise<T>;
const list = () => get<RunSummary[]>('/api/runs');
const report = (id: string) => get<RunReport>(`/api/run?run=${encodeURIComponent(id)}`);

describe('the list of runs', () => {
  it('has every run of the folder, those of subfolders too, with its state and best performance', async () => {
    const [first, second] = [startRun('one'), startRun('sweep/two')];
    second.lock.release();
    const runs = await list();
    expect(runs).toMatchObject([
      {
        id: 'one',
        state: 'running',
        kind: 'forecast',
        strategy: 'learned',
        step: 20,
        best: -1.5,
        validation: { name: 'validation loss', better: 'lower' },
      },
      { id: 'sweep/two', state: 'killed' },
    ]);
    first.lock.release();
  });

  it('shows a run that consists of others by what they have done so far', async () => {
    const config = { seed: 1, problem: { kind: 'forecast' }, training: { episodes: 4, steps: 10 } };
    const whole = createRun(join(root, 'walk'), { config, seed: 1, command: ['tcts'] });
    const members = ['w1', 'w2', 'w3'].map((name) => ({ name, seed: 1 }));
    writeFileSync(join(whole.path, 'members.json'), membersJson(members));
    // The third has not begun.
    for (const name of ['w1', 'w2']) startRun(`walk/members/${name}`).lock.release();
    appendFileSync(join(whole.path, 'members/w1/metrics.jsonl'), '{"step":30,"episode":3,"performance":-0.5}\n');
    // 30 + 20 of 3 · 4 · 10 updates; the best are −0.5 and −1.5.
    const expected = { id: 'walk', state: 'running', step: 50, updates: 120, best: -1 };
    expect(await list()).toMatchObject([expected]);
    expect(await report('walk')).toMatchObject({ ...expected, losses: [], problems: [] });
    whole.lock.release();
  });

  it('is empty for a folder without runs', async () => {
    mkdirSync(join(root, 'nothing'));
    expect(await list()).toEqual([]);
  });

  it.each([
    ['run.json', '{"version": "0.1', 'expected the description of a run'],
    ['run.json', '', 'expected the description of a run'],
    ['config.yaml', 'a: [', 'config.yaml'],
  ])('shows a run whose %s is damaged with the reason', async (file, content, reason) => {
    const run = startRun('one');
    writeFileSync(join(run.path, file), content);
    expect(await list()).toMatchObject([{ id: 'one', state: 'unreadable', message: expect.stringContaining(reason) }]);
    expect(await report('one')).toMatchObject({ state: 'unreadable', episodes: [] });
    run.lock.release();
  });
});

describe('the report of a run', () => {
  it('has its curves and the distribution over the tasks', async () => {
    startRun('one').lock.release();
    expect(await report('one')).toMatchObject({
      losses: [[5, 2]],
      tasks: ['a', 'b'],
      episodes: [
        { episode: 1, step: 10, performance: -2, reward: 1, distribution: [0.25, 0.75] },
        { episode: 2, step: 20, performance: -1.5, reward: 0.5, distribution: [1, 0] },
      ],
    });
  });

  it('grows while the run trains, without the line that is being written', async () => {
    const run = startRun('one');
    await report('one');
    appendFileSync(join(run.path, 'metrics.jsonl'), '{"step":30,"loss":1.5}\n{"step":40,"lo');
    const { losses, step } = await report('one');
    expect(losses).toEqual([
      [5, 2],
      [30, 1.5],
    ]);
    expect(step).toBe(30);
    run.lock.release();
  });

  it('leaves out lines of the log that hold no record, and says so', async () => {
    const run = startRun('one');
    appendFileSync(join(run.path, 'metrics.jsonl'), 'garbage\n[1]\n{"step":30,"loss":1.5}\n');
    expect(await list()).toMatchObject([{ state: 'running', step: 30 }]);
    expect(await report('one')).toMatchObject({
      step: 30,
      episodes: { length: 2 },
      problems: ['metrics.jsonl: 2 lines hold no record and are left out'],
    });
    run.lock.release();
  });

  it('has the evaluations, and says which cannot be read', async () => {
    const run = startRun('one');
    run.lock.release();
    const evaluation = (name: string, content: string) => {
      mkdirSync(join(run.path, 'evaluation', name), { recursive: true });
      writeFileSync(join(run.path, 'evaluation', name, 'scores.json'), content);
    };
    const latency = { stacl: latencyScores(3.5, 0.7), simuleval: latencyScores(3, 0.6) };
    evaluation('test-wait-3-beam-5', JSON.stringify(translationScores({ bleu: 25.5, latency })));
    const data = { name: 'corpora/wmt15', digest: '0123456789abcdef', own: false };
    const scores = { IC: 0.1, RankIC: 0.12 };
    evaluation('validation', JSON.stringify(forecastScores({ split: 'validation', data, scores })));
    evaluation('broken', '{"split": 1}');
    expect(await report('one')).toMatchObject({
      translation: [{ name: 'test-wait-3-beam-5', split: 'test', data: null, bleu: 25.5, AL: 3.5, AP: 0.7 }],
      forecast: [{ split: 'validation', data, figures: { IC: 0.1, RankIC: 0.12 } }],
      problems: [expect.stringMatching(/^evaluation\/broken\/scores\.json: split: .*expected string/)],
    });
  });

  it('takes the nulls that evaluate writes for figures that are undefined', async () => {
    const run = startRun('one');
    run.lock.release();
    const evaluation = (name: string, content: object) => {
      mkdirSync(join(run.path, 'evaluation', name), { recursive: true });
      writeFileSync(join(run.path, 'evaluation', name, 'scores.json'), JSON.stringify(content));
    };
    // Constant forecasts have no correlation, and a portfolio that never moves no information ratio.
    const excessAfterCosts = { annualReturn: 0, informationRatio: Number.NaN };
    evaluation('test', forecastScores({ scores: { IC: Number.NaN, MSE: 0.5 }, excessAfterCosts }));
    const latency = { stacl: latencyScores(Number.NaN, 0.5), simuleval: null };
    evaluation('test-wait-3-beam-1', translationScores({ bleu: Number.NaN, latency }));
    evaluation('test-wait-4-beam-1', translationScores({ k: 4, bleu: 0 }));
    expect(await report('one')).toMatchObject({
      forecast: [{ figures: { IC: null, MSE: 0.5, 'excess return': 0, 'information ratio': null } }],
      translation: [],
      problems: [],
    });
  });

  it('of a run that was deleted is a sentence', async () => {
    startRun('one').lock.release();
    rmSync(join(root, 'one'), { recursive: true });
    const answer = await fetch(`${server.url}/api/run?run=one`);
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ message: expect.stringContaining('it may have been deleted') });
  });

  it('is not sent again while nothing has changed', async () => {
    startRun('one').lock.release();
    const first = await fetch(`${server.url}/api/run?run=one`);
    const headers = { 'If-None-Match': first.headers.get('etag')! };
    expect((await fetch(`${server.url}/api/run?run=one`, { headers })).status).toBe(304);
  });
});
