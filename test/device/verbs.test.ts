import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startTctsBy, tcts } from '../cli/train-process.js';
import { temporaryFolder } from '../run/temporary.js';
import { describeOnDevice, deviceEnvironment } from './software.js';

const MARKET = `problem:
  kind: forecast
  data: {format: synthetic, stocks: 10, days: 200}
  split: {train: [2015-04-01, 2015-07-31], validation: [2015-08-03, 2015-08-31], test: [2015-09-01, 2015-09-30]}
  features: {window: 3}
  model: {name: gru, hidden: 4, layers: 1}
  batch: {size: 16}
strategy: {name: mtl}
training: {episodes: 2, steps: 3}
threads: 1
logging: {tensorboard: false}
`;

function folderWith(config: string): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'small.yaml'), config);
  return folder;
}

/** Losses and performances of a run's log. */
const figuresOf = (folder: string, run: string): number[] =>
  readFileSync(join(folder, 'runs', run, 'metrics.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .flatMap((line) => {
      // The first updates have a loss alone.
      const { loss, performance } = JSON.parse(line) as { loss: number; performance?: number };
      return performance === undefined ? [loss] : [loss, performance];
    });

describeOnDevice('the command line', () => {
  test('a run goes on on the other device, and what it learns is used on both', { timeout: 240_000 }, async () => {
    const folder = folderWith(MARKET);
    const train = async (...args: string[]) => {
      const { code, stderr } = await tcts(folder, 'train', ...args, '--quiet');
      expect(code, stderr).toBe(0);
    };
    await train('small.yaml', '--set', 'name=whole');
    for (const [first, second] of [
      ['webgpu', 'cpu'],
      ['cpu', 'webgpu'],
    ]) {
      const name = `${first}-first`;
      await train('small.yaml', '--set', `name=${name}`, '--device', first, '--until', '2');
      await train('--resume', `runs/${name}`, '--device', second);
      const [expected, found] = [figuresOf(folder, 'whole'), figuresOf(folder, name)];
      expect(found).toHaveLength(expected.length);
      for (const [i, figure] of expected.entries()) expect(found[i]).toBeCloseTo(figure, 5);
    }
    const scored = async (...args: string[]) => {
      const { code, stdout, stderr } = await tcts(folder, 'evaluate', 'runs/webgpu-first', '--json', ...args);
      expect(code, stderr).toBe(0);
      return (JSON.parse(stdout) as { scores: Record<string, number> }).scores;
    };
    const [cpu, device] = [await scored(), await scored('--device', 'webgpu')];
    expect(device.RankIC).toBeCloseTo(cpu.RankIC, 4);
    expect(device.zMSE).toBeCloseTo(cpu.zMSE, 4);
  });

  test('a sentence is translated as on the CPU', { timeout: 120_000 }, async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'some.txt'), 'the old farmer yesterday the red apple bought\n');
    const translate = ['translate', '--input', 'some.txt', '--k', '3'];
    const [cpu, device] = [await tcts(folder, ...translate), await tcts(folder, ...translate, '--device', 'webgpu')];
    expect(device.stdout).toBe(cpu.stdout);
    expect(cpu.stdout.trim().split(' ').length).toBeGreaterThan(3);
  });

  test('what a device cannot do, or that there is none, is one sentence', async () => {
    const folder = folderWith(MARKET);
    const none = ['env', 'VK_ICD_FILENAMES=/no/driver.json', `XDG_RUNTIME_DIR=${deviceEnvironment.XDG_RUNTIME_DIR}`];
    const missing = await startTctsBy(none, folder, 'train', 'small.yaml', '--device', 'webgpu').ended;
    expect(missing.code).toBe(1);
    expect(missing.stderr).toMatch(
      /^tcts: device: there is no device webgpu on this machine, expected a graphics card/m,
    );
    const trees = await tcts(folder, 'train', 'small.yaml', '--model', 'trees', '--device', 'webgpu');
    expect(trees).toMatchObject({ code: 1, stderr: expect.stringMatching(/trees grow on the CPU, not on webgpu/) });
    const workers = await tcts(folder, 'train', 'small.yaml', '--device', 'webgpu', '--set', 'workers=2');
    expect(workers).toMatchObject({ code: 1, stderr: expect.stringMatching(/one worker in one process/) });
  });
});
