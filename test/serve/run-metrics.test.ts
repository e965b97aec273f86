import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  renameSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MetricsReader, SampledSeries } from '../../src/serve/run-metrics.js';
import { temporaryFolder } from '../run/temporary.js';

describe('a sampled series', () => {
  it('is bounded, in order, and has the lowest, the highest and the last item; all of them where there are few', () => {
    const most = fc.integer({ min: 2, max: 40 });
    fc.assert(
      fc.property(fc.array(fc.option(fc.integer()), { maxLength: 500 }), most, (heights, most) => {
        const series = new SampledSeries<readonly [number, number | null]>(most, ([, height]) => height);
        for (const [place, height] of heights.entries()) series.add([place, height]);
        const items = series.items();
        expect(items.length).toBeLessThanOrEqual(2 * most + 1);
        if (heights.length <= most) expect(items.map(([, height]) => height)).toEqual(heights);
        const places = items.map(([place]) => place);
        expect(places).toEqual([...new Set(places)].sort((a, b) => a - b));
        expect(places.at(-1)).toBe(heights.length === 0 ? undefined : heights.length - 1);
        const known = (all: readonly (number | null)[]) => all.filter((height) => height !== null);
        const kept = known(items.map(([, height]) => height));
        expect(Math.min(...kept)).toBe(Math.min(...known(heights)));
        expect(Math.max(...kept)).toBe(Math.max(...known(heights)));
      }),
    );
  });
});

describe('the log of a run', () => {
  const update = (step: number, loss = 1) => `${JSON.stringify({ step, loss })}\n`;
  const episode = (step: number, performance: number) =>
    `${JSON.stringify({ step, episode: step, performance, reward: 0, loss: 1, distribution: { a: 1 } })}\n`;

  function log() {
    const run = join(temporaryFolder(), 'run');
    mkdirSync(run);
    const reader = new MetricsReader();
    return { run, file: join(run, 'metrics.jsonl'), read: () => reader.read(run) };
  }

  it('is read from where it ended the last time', async () => {
    const { file, read } = log();
    expect(await read()).toMatchObject({ step: 0, losses: [] });
    writeFileSync(file, update(1).repeat(400) + update(2));
    await read();
    // What has been read is not read again: that it is corrupted goes unnoticed.
    const handle = openSync(file, 'r+');
    writeSync(handle, 'spoilt', 0);
    closeSync(handle);
    appendFileSync(file, `${update(3)}{"step":4`);
    expect(await read()).toMatchObject({ step: 3, badLines: 0, losses: { length: 402 } });
    appendFileSync(file, ',"loss":1}\n');
    expect(await read()).toMatchObject({ step: 4, losses: { length: 403 } });
  });

  it('is read anew when it was cut, also when it has grown beyond its old length since', async () => {
    const { file, read } = log();
    writeFileSync(file, update(1, 1) + update(2, 7) + episode(3, 9));
    expect(await read()).toMatchObject({ step: 3, best: 9 });
    truncateSync(file, update(1, 1).length);
    expect(await read()).toMatchObject({ step: 1, best: null, losses: [[1, 1]] });
    appendFileSync(file, update(2, 7));
    await read();
    truncateSync(file, update(1, 1).length);
    appendFileSync(file, update(2, 8) + update(3, 9));
    expect(await read()).toMatchObject({
      step: 3,
      losses: [
        [1, 1],
        [2, 8],
        [3, 9],
      ],
    });
  });

  it('is read anew when another file has taken its place', async () => {
    const { file, read } = log();
    writeFileSync(file, update(1, 1) + update(2, 7));
    await read();
    writeFileSync(`${file}.new`, update(5, 1) + update(2, 7) + update(6));
    renameSync(`${file}.new`, file);
    expect(await read()).toMatchObject({ step: 6, losses: { length: 3 } });
  });

  it('of a hundred thousand lines is thinned out without losing a peak, while other work goes on', async () => {
    const { file, read } = log();
    const lines = Array.from({ length: 100_000 }, (_, i) => (i % 2 === 0 ? update(i, 1) : episode(i, -1)));
    lines[33_334] = update(33_334, 50);
    lines[77_777] = episode(77_777, 2);
    writeFileSync(file, lines.join(''));
    let turns = 0;
    let isOver = false;
    const turn = () => {
      turns++;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    const [metrics, same] = await Promise.all([read(), read()]);
    isOver = true;
    expect(same).toBe(metrics);
    // More than 5 MiB, with a pause after every one of them.
    expect(turns).toBeGreaterThanOrEqual(5);
    const { losses, episodes } = metrics;
    expect(metrics).toMatchObject({ step: 99_999, best: 2, badLines: 0 });
    expect(losses.length).toBeLessThanOrEqual(2001);
    expect(episodes.length).toBeLessThanOrEqual(1001);
    expect(losses).toContainEqual([33_334, 50]);
    expect(episodes.find(({ step }) => step === 77_777)).toMatchObject({ performance: 2 });
    expect([losses.at(-1)![0], episodes.at(-1)!.step]).toEqual([99_998, 99_999]);
    const began = performance.now();
    for (let i = 0; i < 20; i++) {
      appendFileSync(file, update(100_000 + i));
      await read();
    }
    // Reading all of it twenty times takes far longer.
    expect(performance.now() - began).toBeLessThan(2000);
  });

  it('may have more than 512 MB, which no string can hold', async () => {
    const { file, read } = log();
    writeFileSync(file, update(1));
    // A hole takes no space on the disk.
    truncateSync(file, 2 ** 29 + 1000);
    appendFileSync(file, `\n${update(2)}`);
    expect(await read()).toMatchObject({ step: 2, badLines: 1, losses: { length: 2 } });
  });
});
