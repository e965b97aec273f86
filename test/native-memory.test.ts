import { expect, it } from 'vitest';
import * as t from '../src/tensor/index.js';

interface Header {
  readonly glibcVersionRuntime?: string;
}

const { header } = process.report.getReport() as unknown as { header: Header };
const [PARTS, SIZE, RUNS] = [4, 1 << 20, 20];

it.skipIf(header.glibcVersionRuntime === undefined)(
  'outputs that are written to given arrays cost almost no page faults, although the runtime copies them',
  async () => {
    const names = Array.from({ length: PARTS }, (_, i) => `out${i}`);
    const program = t.trace({ x: t.f32('N') }, ({ x }) =>
      Object.fromEntries(names.map((name, i) => [name, t.mul(x, i + 2)])),
    );
    const session = await t.Session.create(t.lower(program));
    const x = { data: new Float32Array(SIZE).fill(1), shape: [SIZE] };
    const into = Object.fromEntries(names.map((name) => [name, new Float32Array(SIZE)]));
    const run = () => session.run({ x }, { into });
    for (let i = 0; i < 5; i++) await run();
    const before = process.resourceUsage().minorPageFault;
    for (let i = 0; i < RUNS; i++) await run();
    const faults = (process.resourceUsage().minorPageFault - before) / RUNS;
    await session.close();
    expect(into.out3[SIZE - 1]).toBe(5);
    // Four arrays of 4 MiB are 4,096 pages of 4 KiB.
    expect(faults).toBeLessThan(1000);
  },
);
