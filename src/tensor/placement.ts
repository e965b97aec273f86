import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Executable } from './lowering.js';
import { type DeviceFeeds, type Run, Session } from './session.js';

/** Where the operations of a run were computed. */
export interface Placement {
  /** Operations that the device computed. */
  readonly onDevice: number;
  /** Operations on shapes, which the CPU computes while the device works. */
  readonly shapes: number;
  /** Operations on tensors that the device left to the CPU, with their outputs. */
  readonly fallback: readonly string[];
  /** Multiplications and additions of the matrix products. */
  readonly flops: number;
  /** What the operations on the device read and write. */
  readonly bytes: number;
}

/** Runs a program twice and reads from the runtime's trace of the second run where it was computed. */
export async function placement(executable: Executable, feeds: DeviceFeeds, run?: Run): Promise<Placement> {
  const folder = mkdtempSync(join(tmpdir(), 'tcts-trace-'));
  try {
    const session = await Session.create(executable, { profile: join(folder, 'trace') });
    for (let i = 0; i < RUNS; i++) await session.run(feeds, run);
    session.endProfile();
    await session.close();
    const [file] = readdirSync(folder);
    const events = JSON.parse(readFileSync(join(folder, file), 'utf8')) as TraceEvent[];
    return summary(events.filter(({ cat, args }) => cat === 'Node' && args?.provider !== undefined));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const RUNS = 2;

/** Chrome's trace format, as the runtime writes it. */
interface TraceEvent {
  readonly cat: string;
  readonly args?: {
    readonly provider?: string;
    readonly op_name?: string;
    /** One object for each input and output: its type and sizes. */
    readonly input_type_shape?: readonly TypeAndShape[];
    readonly output_type_shape?: readonly TypeAndShape[];
  };
}

type TypeAndShape = Readonly<Record<string, readonly number[]>>;

function summary(events: readonly TraceEvent[]): Placement {
  const onCpu = events.filter(({ args }) => args?.provider === 'CPUExecutionProvider');
  const onDevice = events.filter(({ args }) => args?.provider !== 'CPUExecutionProvider');
  const fallback = onCpu.filter((event) => !isShape(event));
  return {
    onDevice: onDevice.length / RUNS,
    shapes: (onCpu.length - fallback.length) / RUNS,
    fallback: fallback.map(({ args }) => `${args?.op_name} ${JSON.stringify(args?.output_type_shape)}`),
    flops: sumOf(onDevice, flopsOf) / RUNS,
    bytes: sumOf(onDevice, bytesOf) / RUNS,
  };
}

const sumOf = (events: readonly TraceEvent[], of: (event: TraceEvent) => number): number =>
  events.reduce((sum, event) => sum + of(event), 0);

/** 2·k for each element of a product. */
function flopsOf({ args }: TraceEvent): number {
  if (args?.op_name !== 'MatMul' && args?.op_name !== 'Gemm') return 0;
  const [[a], [out]] = [args.input_type_shape, args.output_type_shape].map((list) =>
    (list ?? []).map((type) => Object.values(type)[0]),
  );
  const count = (sizes: readonly number[]): number => sizes.reduce((product, size) => product * size, 1);
  // a has m·k elements, the product m·n; with a transposed as well.
  const inner = (count(a) * (out.at(-1) ?? 1)) / count(out);
  return 2 * count(out) * inner;
}

/** Views of a tensor cost nothing; everything else reads its inputs and writes its outputs, four bytes per element. */
function bytesOf({ args }: TraceEvent): number {
  if (VIEWS.has(args?.op_name ?? '')) return 0;
  const types = [...(args?.input_type_shape ?? []), ...(args?.output_type_shape ?? [])];
  return types.reduce((sum, type) => sum + 4 * Object.values(type)[0].reduce((product, size) => product * size, 1), 0);
}

const VIEWS = new Set(['Reshape', 'Squeeze', 'Unsqueeze', 'Shape', 'Identity']);

/** Whether all outputs of an operation are a few integers: sizes, and values computed from them. */
function isShape({ args }: TraceEvent): boolean {
  const outputs = (args?.output_type_shape ?? []).flatMap((output) => Object.entries(output));
  return outputs.every(([type, sizes]) => type.startsWith('int') && sizes.length <= 1 && (sizes[0] ?? 1) <= LONGEST);
}

/** Axes of the longest shape that there is. */
const LONGEST = 8;
