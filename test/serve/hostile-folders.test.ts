import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunReport, RunSummary } from '../../src/serve/run-report.js';
import { startTcts } from '../cli/train-process.js';
import { randomTranslationRun, type TranslationRun } from '../cli/translation-run.js';
import { forecastScores } from './evaluations.js';
import { LiveClient } from './live-client.js';

/** All files that the server reads of a run. */
const FILES = [
  'run.json',
  'config.yaml',
  'run.lock',
  'metrics.jsonl',
  'result.json',
  'evaluation/test/scores.json',
  'text.json',
  'model.json',
  'dict.SOURCE.txt',
  'checkpoints/best.safetensors',
];

/** Longer than an answer takes, and shorter than forever. */
const PATIENCE = 20_000;

// As its own process: a server that hangs, or ends, would take the test with it.
describe.skipIf(process.platform === 'win32')('tcts serve on folders and connections of others', () => {
  let made: TranslationRun;
  let runs: string;
  let server: ReturnType<typeof startTcts>;
  let url: string;

  beforeAll(async () => {
    made = await randomTranslationRun(5);
    runs = join(made.scratch, 'runs');
    fill(made.folder);
    const source = await languageOf(made.folder);
    for (const name of FILES.map((file) => file.replace('SOURCE', source))) {
      replaced('pipe', name, (path) => execFileSync('mkfifo', [path]));
      replaced('folder', name, (path) => mkdirSync(path));
      replaced('out', name, (path) => symlinkSync(join(made.folder, name), path));
      // Inside the run a link may lead wherever it likes.
      replaced('in', name, (path) => {
        cpSync(join(made.folder, name), `${path}.real`);
        symlinkSync(`${path}.real`, path);
      });
    }
    // Just small enough to be parsed, too large, and long.
    replaced('slow', 'config.yaml', (path) => writeFileSync(path, largeConfig(15_000)));
    replaced('large', 'config.yaml', (path) => writeFileSync(path, largeConfig(400_000)));
    replaced('long', 'metrics.jsonl', (path) => writeFileSync(path, '{"step":5,"loss":2}\n'.repeat(32e6 / 20)));
    replaced('large', 'result.json', (path) => writeFileSync(path, `{"test":null,"x":"${'x'.repeat(5e6)}"}`));
    replaced('out', 'checkpoints', (path) => symlinkSync(join(made.folder, 'checkpoints'), path));
    replaced('out', 'evaluation', (path) => symlinkSync(join(made.folder, 'evaluation'), path));
    server = startTcts(made.scratch, 'serve', 'runs', '--port', '0');
    let said = '';
    for await (const text of server.child.stderr) {
      said += text;
      url = /http:\S+/.exec(said)?.[0] ?? '';
      if (url !== '') break;
    }
    url = url.replace('localhost', '127.0.0.1');
  });

  afterAll(async () => {
    server.child.kill('SIGKILL');
    await server.ended;
    made.remove();
  });

  /** A copy of the run with one of its files replaced. */
  function replaced(kind: string, name: string, make: (path: string) => void): void {
    const path = join(runs, `${kind}-${name.replaceAll('/', '-')}`);
    cpSync(made.folder, path, { recursive: true });
    rmSync(join(path, name), { recursive: true });
    make(join(path, name));
  }

  const get = async <T>(path: string): Promise<T> => {
    const answer = await fetch(url + path, { signal: AbortSignal.timeout(PATIENCE) });
    return (await answer.json()) as T;
  };
  const report = (id: string) => get<RunReport>(`/api/run?run=${encodeURIComponent(id)}`);
  const said = ({ message, problems }: RunReport): string => [message, ...problems].join('\n');

  it('lists all runs', async () => {
    const list = await get<RunSummary[]>('/api/runs');
    expect(list).toHaveLength(4 * FILES.length + 6);
    expect(list.filter(({ state }) => state !== 'unreadable').map(({ id }) => id)).toEqual(
      expect.arrayContaining(['in-run.json', 'in-metrics.jsonl', 'pipe-result.json', 'out-run.lock']),
    );
  });

  it.each(['metrics.jsonl', 'run.json', 'config.yaml', 'result.json', 'evaluation-test-scores.json'])(
    'reads %s where it is a regular file inside the run, and nothing else',
    async (name) => {
      expect(said(await report(`pipe-${name}`))).toContain('expected a regular file, found a pipe');
      expect(said(await report(`folder-${name}`))).toContain('expected a regular file, found a folder');
      expect(said(await report(`out-${name}`))).toContain('a link that leads out of the run folder');
      const whole = await report(`in-${name}`);
      expect(said(whole)).toBe('');
      expect(whole).toMatchObject({ step: 5, test: { RankIC: 0.1 }, forecast: [{ figures: { IC: 0.2 } }] });
    },
  );

  it.runIf(process.getuid?.() === 0)('reads no device', async () => {
    // Of /dev/zero there is no end.
    for (const name of ['metrics.jsonl', 'run.json', 'config.yaml', 'result.json']) {
      replaced('device', name, (path) => execFileSync('mknod', [path, 'c', '1', '5']));
      expect(said(await report(`device-${name}`))).toContain('expected a regular file, found a device');
      rmSync(join(runs, `device-${name}`), { recursive: true });
    }
  });

  it('does not look into an evaluation folder that is a link', async () => {
    expect(await report('out-evaluation')).toMatchObject({
      forecast: [],
      problems: [expect.stringContaining('it is a link, so it is not followed')],
    });
  });

  it('takes a lock that is no regular file for none', async () => {
    for (const kind of ['pipe', 'folder', 'out']) expect((await report(`${kind}-run.lock`)).state).toBe('killed');
  });

  it('opens models of regular files inside the run alone', async () => {
    const client = await LiveClient.connect(url);
    const outcome = async (run: string): Promise<string> => {
      const lane = `l${client.messages.length}`;
      client.sentence(lane, run, 'wait-k:2', ['ta']);
      return client.text(lane).catch((error: Error) => error.message);
    };
    for (const name of ['text.json', 'model.json', 'checkpoints-best.safetensors']) {
      expect(await outcome(`pipe-${name}`)).toContain('expected a regular file, found a pipe');
      expect(await outcome(`out-${name}`)).toContain('a link that leads out of the run folder');
    }
    expect(await outcome('out-checkpoints')).toContain('a link that leads out of the run folder');
    expect(await outcome('in-text.json')).not.toContain('link');
    await client.close();
    const { runs: offered } = await get<{ runs: { id: string }[] }>('/api/translation');
    expect(offered.map(({ id }) => id)).not.toContain('pipe-model.json');
    expect(offered.map(({ id }) => id)).toContain('in-model.json');
  });

  it('reads no configuration or result that is larger than any of ours', async () => {
    expect(said(await report('large-config.yaml'))).toBe(
      'config.yaml: the page reads at most 16 kB of it, it has 400 kB',
    );
    expect(said(await report('large-result.json'))).toContain('result.json: the page reads at most 4000 kB of it');
    expect(await report('long-metrics.jsonl')).toMatchObject({ step: 5, problems: [] });
  });

  it('answers others first while it reads what takes long, or opens a model', async () => {
    const order: string[] = [];
    const note = (name: string) => () => order.push(name);
    const client = await LiveClient.connect(url);
    writeFileSync(join(runs, 'slow-config.yaml/config.yaml'), `${largeConfig(15_000)}z: 1\n`);
    const slow = [
      report('slow-config.yaml').then(note('slow')),
      client.until((m) => m.type === 'begun').then(note('slow')),
    ];
    client.send({ type: 'begin', lane: 'a', run: 'in-result.json', policy: 'wait-k:2' });
    await Promise.all([1, 2, 3].map(() => fetch(`${url}/page/style.css`).then(note('quick'))));
    await Promise.all(slow);
    expect(order).toEqual(['quick', 'quick', 'quick', 'slow', 'slow']);
    await client.close();
  });

  it('parses what has not changed only once', async () => {
    const time = async () => {
      const began = performance.now();
      await report('slow-config.yaml');
      return performance.now() - began;
    };
    const first: number[] = [];
    for (let i = 0; i < 3; i++) {
      writeFileSync(join(runs, 'slow-config.yaml/config.yaml'), `${largeConfig(15_000)}z: ${i}\n`);
      first.push(await time());
    }
    const again = [await time(), await time(), await time()];
    expect(Math.min(...again)).toBeLessThan(Math.min(...first) / 2);
  });

  it('names no path of the server', async () => {
    const list = JSON.stringify(await get<RunSummary[]>('/api/runs'));
    const reports = await Promise.all(
      FILES.slice(0, 6).flatMap((name) =>
        ['pipe', 'folder', 'out'].map((kind) => report(`${kind}-${name.replaceAll('/', '-')}`)),
      ),
    );
    expect(list + JSON.stringify(reports)).not.toContain(dirname(made.scratch));
    const client = await LiveClient.connect(url);
    for (const run of ['pipe-text.json', 'out-checkpoints-best.safetensors', 'folder-model.json']) {
      const lane = `l${client.messages.length}`;
      client.sentence(lane, run, 'wait-k:2', ['ta']);
      const message = await client.text(lane).catch((error: Error) => error.message);
      expect(message).toMatch(/expected|link/);
      expect(message).not.toContain(dirname(made.scratch));
    }
    await client.close();
  });

  it('stays up when connections are reset while their upgrade is refused', async () => {
    const { port } = new URL(url);
    for (let attempt = 0; attempt < 60; attempt++) {
      const socket = connect(Number(port), '127.0.0.1');
      socket.on('error', () => {});
      await once(socket, 'connect');
      const headers = 'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ';
      socket.write(`GET /live HTTP/1.1\r\nHost: evil.example\r\n${headers}dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`);
      await new Promise((resolve) => setTimeout(resolve, attempt % 5));
      socket.resetAndDestroy();
    }
    expect(server.child.exitCode).toBeNull();
    expect(await get<RunSummary[]>('/api/runs')).not.toEqual([]);
  });

  it('ends the connection of a refused upgrade, also where the client does not', async () => {
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true });
    socket.write('GET /live HTTP/1.1\r\nHost: evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
    let answer = '';
    socket.setEncoding('utf8').on('data', (text) => (answer += text));
    await once(socket, 'end');
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    socket.destroy();
  });

  it('refuses a policy with numbers that would keep it busy, at once', async () => {
    const client = await LiveClient.connect(url);
    const began = performance.now();
    client.sentence('a', 'in-text.json', 'adaptive:max=16000000', ['ta']);
    await expect(client.text('a')).rejects.toThrow('from 1 to 1000 for max of adaptive, found "16000000"');
    client.sentence('b', 'in-text.json', `adaptive:min=${'1,'.repeat(40)}1,max=${'999,'.repeat(15)}999`, ['ta']);
    await expect(client.text('b')).rejects.toThrow('expected one policy, found 656');
    expect(performance.now() - began).toBeLessThan(5000);
    await client.close();
  });
});

/** A configuration of this many bytes. */
function largeConfig(bytes: number): string {
  const line = (i: number) => `k${String(i).padStart(6, '0')}: [1, 2]\n`;
  return Array.from({ length: bytes / line(0).length }, (_, i) => line(i)).join('');
}

/** What a run has besides its model. */
function fill(folder: string): void {
  const write = (name: string, content: object): void => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), `${JSON.stringify(content)}\n`);
  };
  write('metrics.jsonl', { step: 5, loss: 2 });
  write('result.json', { updates: 5, best: null, test: { RankIC: 0.1 } });
  write('evaluation/test/scores.json', forecastScores({ scores: { IC: 0.2 } }));
  write('run.lock', {});
}

async function languageOf(folder: string): Promise<string> {
  const { loadLanguages } = await import('../../src/translate/text/languages.js');
  return loadLanguages(folder).source.config.language;
}
