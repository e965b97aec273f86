import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { trainConfigSchema } from '../../src/problems/index.js';
import { checkpointFolder, latestCheckpoint, openRun, resolvedYaml } from '../../src/run/index.js';
import type { Job } from '../../src/sweep/job.js';
import { queueExecutor } from '../../src/sweep/queue/executor.js';
import { startTcts, tcts } from '../cli/train-process.js';
import { describeWithRedis, startRedis } from '../redis.js';
import { temporaryFolder } from '../run/temporary.js';

function startWorker(folder: string, ...args: string[]) {
  const worker = startTcts(folder, 'worker', '--runs', 'runs', ...args);
  onTestFinished(() => void worker.child.kill('SIGKILL'));
  return worker;
}

/** Command lines of a process and of all that it has started, as every user of the machine can read them. */
function commandsOf(pid: number): string[] {
  try {
    const own = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    );
    return [own, ...children.flatMap(commandsOf)];
  } catch {
    return []; // it has just ended
  }
}

function sharedFolder(): string {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'runs'));
  return folder;
}

const training = (folder: string, episodes: number): Job => ({
  name: 'run',
  folder: join(folder, 'runs/grid/run'),
  config: resolvedYaml(
    trainConfigSchema.parse({
      problem: { kind: 'known-answer' },
      strategy: { name: 'mtl' },
      training: { episodes, steps: 2 },
      threads: 1,
    }),
  ),
  after: [],
  cores: 1,
});

/** A grid of one short run, beside the shared folder. */
function writeGrid(folder: string): string {
  writeFileSync(join(folder, 'base.yaml'), training(folder, 5).config);
  writeFileSync(join(folder, 'grid.yaml'), 'base: base.yaml\ngroups: [{name: only}]\n');
  return 'grid.yaml';
}

function latestStep(folder: string): number {
  const saved = latestCheckpoint(checkpointFolder(folder), (warning) => {
    throw new Error(warning);
  });
  return saved?.step ?? 0;
}

// Several processes in turn: patience for a busy machine.
vi.setConfig({ testTimeout: 180_000 });

describeWithRedis('tcts worker', () => {
  it('that gets SIGTERM lets its run save itself and ends in good order; another worker goes on with the run', async () => {
    const folder = sharedFolder();
    const { url } = await startRedis();
    const sweep = await queueExecutor(url, { runs: join(folder, 'runs'), lookSeconds: 0.1 });
    onTestFinished(() => sweep.close());
    // Without the signal, this one would end in hours.
    const endless = training(folder, 10_000_000);
    const outcome = sweep.submit(endless, () => {});
    const worker = startWorker(folder, '--queue', url);
    await vi.waitFor(() => expect(openRun(endless.folder).info.state).toBe('running'), 60_000);
    await sleep(500);
    worker.child.kill('SIGTERM');
    const { code, stderr } = await worker.ended;
    expect(code).toBe(0);
    expect(stderr.split('\n')).toEqual([
      expect.stringMatching(/^listening to redis:.*, devices cpu/),
      'grid/run: begun',
      'SIGTERM: the runs save themselves and are given back; once more to end at once',
      'grid/run: given back',
      '',
    ]);
    expect(openRun(endless.folder).info.state).toBe('interrupted');
    const saved = latestStep(endless.folder);
    expect(saved).toBeGreaterThan(0);

    const heir = startWorker(folder, '--queue', url);
    await vi.waitFor(() => expect(openRun(endless.folder).info.state).toBe('running'), 60_000);
    await sleep(500);
    // The sweep wants no more of it.
    await sweep.close();
    expect(await outcome).toEqual({ state: 'stopped' });
    heir.child.kill('SIGINT');
    expect(await heir.ended).toMatchObject({ code: 0 });
    expect(latestStep(endless.folder)).toBeGreaterThan(saved);
  });

  it('keeps the password of the queue to itself', async () => {
    const folder = sharedFolder();
    const { port } = await startRedis({ args: ['--requirepass', 'sesame'] });
    const wrong = await startWorker(folder, '--queue', `redis://:sEcReT@127.0.0.1:${port}`).ended;
    expect(wrong).toEqual({
      code: 1,
      signal: null,
      stdout: '',
      stderr: `tcts: redis://***@127.0.0.1:${port}: Redis refuses this user and password\n`,
    });

    vi.stubEnv('TCTS_QUEUE', `redis://default:sesame@127.0.0.1:${port}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    const sweep = await queueExecutor(process.env.TCTS_QUEUE!, { runs: join(folder, 'runs'), lookSeconds: 0.1 });
    onTestFinished(() => sweep.close());
    const job = training(folder, 5);
    // The variable that it knows, or one that is named: either way the list of processes does not have it.
    vi.stubEnv('OWN_QUEUE', process.env.TCTS_QUEUE);
    vi.stubEnv('TCTS_QUEUE', undefined);
    const worker = startWorker(folder, '--queue-env', 'OWN_QUEUE');
    const seen = new Set<string>();
    const watch = setInterval(() => {
      for (const command of commandsOf(worker.child.pid!)) seen.add(command);
    }, 10);
    expect(await sweep.submit(job, () => {})).toEqual({ state: 'done' });
    clearInterval(watch);
    // The worker itself, and the training that it has started.
    expect([...seen].filter((command) => /worker|train/.test(command)).length).toBeGreaterThan(1);
    expect([...seen].join('\n')).not.toContain('sesame');
    worker.child.kill('SIGTERM');
    const { stderr } = await worker.ended;
    // Neither what it says nor any file that it or the training wrote has it.
    const grep = spawnSync('grep', ['-r', 'sesame', folder], { encoding: 'utf8' });
    expect([stderr.includes('sesame'), grep.stdout, grep.status]).toEqual([false, '', 1]);
  });

  it('speaks TLS to a server whose certificate it can check, and to no other', async (context) => {
    const folder = sharedFolder();
    const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
    const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
    const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', key, '-out', certificate];
    if (spawnSync('openssl', [...request, ...names]).status !== 0) return context.skip('there is no openssl here');
    const tls = ['--tls-cert-file', certificate, '--tls-key-file', key, '--tls-ca-cert-file', certificate];
    const { port } = await startRedis({
      tls: true,
      args: ['--requirepass', 'sesame', '--tls-auth-clients', 'no', ...tls],
    });
    const url = `rediss://:sesame@localhost:${port}`;
    const refused = await startWorker(folder, '--queue', url, '--quiet').ended;
    expect(refused.stderr).toMatch(
      /^tcts: rediss:\/\/\*\*\*@localhost:\d+: the certificate of the server is not accepted \(.*\); name your authority/,
    );

    vi.stubEnv('NODE_EXTRA_CA_CERTS', certificate);
    onTestFinished(() => void vi.unstubAllEnvs());
    const worker = startWorker(folder, '--queue', url);
    const sweep = await tcts(folder, 'sweep', writeGrid(folder), '--queue', url, '--quiet', '--json');
    expect(JSON.parse(sweep.stdout)).toMatchObject({ runs: [{ state: 'done' }] });
    worker.child.kill('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0 });
  });

  it('refuses to begin without a queue or a folder', async () => {
    const folder = sharedFolder();
    expect((await tcts(folder, 'worker', '--runs', 'runs')).stderr).toBe(
      'tcts: --queue: expected the address of the queue\n',
    );
    expect((await tcts(folder, 'worker', '--runs', 'runs', '--queue-env', 'NO_QUEUE')).stderr).toBe(
      'tcts: --queue-env: the environment variable NO_QUEUE is not set\n',
    );
    expect((await tcts(folder, 'worker', '--runs', 'absent', '--queue', 'redis://x', '--quiet')).stderr).toBe(
      'tcts: absent: there is no such folder; expected the one shared by all machines\n',
    );
    expect((await tcts(folder, 'worker', '--runs', 'runs', '--queue', 'queue', '--quiet')).stderr).toMatch(
      /^tcts: the address of the queue cannot be used: it is not a URL; expected redis:\/\//,
    );
  });
});
