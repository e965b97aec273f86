import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, cpus, freemem, totalmem } from 'node:os';
import type { Command } from 'commander';
import { type DeviceName, type GraphicsCard, graphicsCards } from '../devices.js';
import { commonKeys, workersOf } from '../run/config/load.js';
import { toolVersion } from '../run/versions.js';
import { IR_VERSION, OPSET } from '../tensor/onnx.js';
import { colorsFor } from './terminal.js';

/** What `tcts doctor` found, in the form that `--json` prints. */
export interface Diagnosis {
  readonly versions: { tcts: string; node: string; onnxruntime: string; onnxIr: number; onnxOpset: number };
  readonly machine: { cpu: string; cores: number; simd: readonly string[]; memoryGiB: number; freeGiB: number };
  /** Defaults of a configuration: cores in use, and workers that share each batch. */
  readonly defaults: { threads: number; workers: number };
  readonly speed: {
    gemmGflops: Readonly<Record<string, number>>;
    gruSamplesPerSecond: Readonly<Record<string, number>>;
  };
  /** Graphics cards, and what WebGPU does on the one that it uses; null if there is none. */
  readonly device: DeviceCheck | null;
  /** What is missing, and how to get it. Empty if everything is there. */
  readonly missing: readonly Missing[];
}

interface Missing {
  readonly what: string;
  readonly needed: string;
  readonly remedy: string;
  readonly fatal: boolean;
}

export function registerDoctor(program: Command): void {
  program
    .command('doctor')
    .description('Check the installation: versions, cores, SIMD features, graphics cards, speed, and what is missing.')
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExample:\n  tcts doctor')
    .action(async ({ json }: { json?: boolean }) => {
      const diagnosis = await diagnose();
      process.stdout.write(json ? `${JSON.stringify(diagnosis)}\n` : describe(diagnosis));
      if (diagnosis.missing.some(({ fatal }) => fatal)) process.exitCode = 1;
    });
}

async function diagnose(): Promise<Diagnosis> {
  const cores = availableParallelism();
  const threads = commonKeys.threads.parse(undefined);
  const missing = whatIsMissing();
  const broken = missing.some(({ fatal }) => fatal);
  const counts = [...new Set([1, cores])];
  const measure = async (speed: (count: number) => Promise<number>): Promise<Record<string, number>> => {
    const found: Record<string, number> = {};
    if (!broken) for (const count of counts) found[count] = await speed(count);
    return found;
  };
  return {
    versions: {
      tcts: toolVersion,
      node: process.versions.node,
      onnxruntime: packageVersion('onnxruntime-node') ?? 'missing',
      onnxIr: IR_VERSION,
      onnxOpset: OPSET,
    },
    machine: {
      cpu: cpus()[0]?.model.trim() ?? 'unknown',
      cores,
      simd: simdFeatures(),
      memoryGiB: round(totalmem() / 2 ** 30),
      freeGiB: round(freemem() / 2 ** 30),
    },
    defaults: { threads, workers: workersOf({ threads, workers: commonKeys.workers.parse(undefined) }) },
    speed: { gemmGflops: await measure(gemmSpeed), gruSamplesPerSecond: await measure(gruSpeed) },
    device: broken ? null : await deviceCheck(missing),
    missing,
  };
}

/** A card without a working driver counts as missing. */
async function deviceCheck(missing: Missing[]): Promise<DeviceCheck | null> {
  const cards = graphicsCards();
  if (cards.length === 0) return null;
  try {
    return await checkDevice('webgpu', cards);
  } catch (error) {
    const remedy = error instanceof Error ? error.message : String(error);
    missing.push({ what: 'WebGPU', needed: `computing on ${cards[0].name}`, remedy, fatal: false });
    return null;
  }
}

function deviceWords(check: DeviceCheck | null): string {
  if (check === null) return 'none that can be used; docs/devices.md';
  const { cards, largestMiB, difference, updatesPerSecond } = check;
  const most = largestMiB === 2048 ? 'at least 2,048 MiB' : `${largestMiB.toLocaleString('en')} MiB`;
  return (
    `${cards.map(({ name }) => name).join(', ')}: tensors of ${most}, losses within ${difference.toExponential(0)} of the CPU, ` +
    `${updatesPerSecond.device} updates/s of a small GRU (CPU ${updatesPerSecond.cpu})`
  );
}

function describe({ versions, machine, defaults, speed, device, missing }: Diagnosis): string {
  const each = (figures: Readonly<Record<string, number>>, unit: string, thing: string): string =>
    Object.entries(figures)
      .map(([count, value]) => `${value.toLocaleString('en')} ${unit} with ${some(Number(count), thing)}`)
      .join(', ') || 'not measured';
  const others = machine.cores === defaults.threads ? '' : `; for all of this machine: --set threads=${machine.cores}`;
  const rows: [string, string][] = [
    ['tcts', versions.tcts],
    ['Node.js', versions.node],
    ['ONNX Runtime', `${versions.onnxruntime} (models: IR ${versions.onnxIr}, opset ${versions.onnxOpset})`],
    ['processor', `${machine.cpu}, ${some(machine.cores, 'core')}`],
    ['SIMD', machine.simd.join(' ') || 'unknown'],
    ['memory', `${machine.memoryGiB} GiB, ${machine.freeGiB} GiB free`],
    ['threads in use', `${defaults.threads} by default, as ${some(defaults.workers, 'data-parallel worker')}${others}`],
    ['matrix product', each(speed.gemmGflops, 'GFLOP/s', 'thread')],
    ['GRU training', each(speed.gruSamplesPerSecond, 'samples/s', 'worker')],
    ['graphics card', deviceWords(device)],
  ];
  const { bold, green, red, yellow } = colorsFor(process.stdout);
  const table = rows.map(([name, value]) => `${bold(name.padEnd(15))} ${value}\n`).join('');
  const gaps = missing.map(
    ({ what, needed, remedy, fatal }) =>
      `${fatal ? red('missing') : yellow('optional')} ${what}: ${needed}; ${remedy}\n`,
  );
  return table + (gaps.join('') || `${green('nothing is missing')}\n`);
}

function whatIsMissing(): Missing[] {
  const found: Missing[] = [];
  if (packageVersion('onnxruntime-node') === undefined) {
    found.push({
      what: 'onnxruntime-node',
      needed: 'runs every model',
      remedy: 'install the package again',
      fatal: true,
    });
  }
  if (!existsSync(new URL('../kernels.wasm', import.meta.url))) {
    found.push({ what: 'kernels.wasm', needed: 'updates parameters', remedy: 'run "npm run build"', fatal: true });
  }
  if (packageVersion('@node-rs/jieba') === undefined) {
    const needed = 'segments Chinese text';
    found.push({ what: '@node-rs/jieba', needed, remedy: 'npm install @node-rs/jieba', fatal: false });
  }
  return found;
}

/** The version of an installed package, without loading it. */
function packageVersion(name: string): string | undefined {
  const require = createRequire(import.meta.url);
  const folders = require.resolve.paths(name) ?? [];
  const file = folders.map((folder) => `${folder}/${name}/package.json`).find((path) => existsSync(path));
  return file === undefined ? undefined : (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** The vector extensions that matter for speed, as the kernel lists them. */
function simdFeatures(): string[] {
  if (!existsSync('/proc/cpuinfo')) return [];
  const flags = /^(?:flags|Features)\s*:\s*(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1].split(' ') ?? [];
  return flags.filter((flag) =>
    /^(sse4_2|avx|avx2|fma|f16c|avx512(f|bw|vl|_vnni|_bf16)|amx_(tile|bf16)|asimd|sve2?)$/.test(flag),
  );
}

const some = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? '' : 's'}`;

const round = (value: number): number => Math.round(value * 10) / 10;

/** GFLOP/s of 1024 × 1024 matrix products. */
async function gemmSpeed(threads: number): Promise<number> {
  const { f32, lower, matmul, Session, trace } = await import('../tensor/index.js');
  const size = 1024;
  const program = trace({ a: f32(size, size), b: f32(size, size) }, ({ a, b }) => ({ c: matmul(a, b) }));
  const session = await Session.create(lower(program), { threads });
  const matrix = { data: new Float32Array(size * size).fill(0.5), shape: [size, size] };
  const c = new Float32Array(size * size);
  const seconds = await secondsEach(() => session.run({ a: matrix, b: matrix }, { into: { c } }));
  await session.close();
  return Math.round((2 * size ** 3) / seconds / 1e9);
}

/** Samples per second of the paper's forecaster: GRU 2×32, 60 days of 5 fields, batch 800, one Adam update each. */
async function gruSpeed(workers: number): Promise<number> {
  const batch = 800;
  const gru = await startGru({ steps: 60, batch, hidden: 32, layers: 2, workers });
  const seconds = await secondsEach(gru.step);
  await gru.close();
  return Math.round(batch / seconds);
}

/** The fastest of the runs that fit into the time, after a warm-up. */
async function secondsEach(run: () => Promise<unknown>): Promise<number> {
  await run();
  let best = Number.POSITIVE_INFINITY;
  for (const end = performance.now() + SECONDS * 1000; performance.now() < end || best === Number.POSITIVE_INFINITY; ) {
    const start = performance.now();
    await run();
    best = Math.min(best, performance.now() - start);
  }
  return best / 1000;
}

/** Seconds that a speed is measured for. */
const SECONDS = 0.5;

/** What `tcts doctor` found about a device. */
interface DeviceCheck {
  readonly device: DeviceName;
  readonly cards: readonly GraphicsCard[];
  /** Largest tensor, of those that were tried, in MiB. */
  readonly largestMiB: number;
  /** Largest relative difference of the losses of some updates from those of the CPU. */
  readonly difference: number;
  /** Updates a second of a small GRU, on the CPU and on the device. */
  readonly updatesPerSecond: { readonly cpu: number; readonly device: number };
}

/** Trains a small GRU on the CPU and on a device, and finds the largest possible tensor. */
async function checkDevice(device: DeviceName, cards: readonly GraphicsCard[]): Promise<DeviceCheck> {
  const cpu = await trainSome('cpu');
  const other = await trainSome(device);
  const differences = cpu.losses.map((loss, i) => Math.abs(other.losses[i] - loss) / Math.abs(loss));
  return {
    device,
    cards,
    largestMiB: await largestTensor(device),
    difference: Math.max(...differences),
    updatesPerSecond: { cpu: cpu.rate, device: other.rate },
  };
}

/** Updates whose losses are compared, and seconds that the rate is then measured for. */
const UPDATES = 5;
const RATE_SECONDS = 1;

async function trainSome(device: DeviceName): Promise<{ losses: number[]; rate: number }> {
  const gru = await startGru({ steps: 4, batch: 64, hidden: 8, layers: 1, device });
  const losses: number[] = [];
  for (let i = 0; i < UPDATES; i++) losses.push(await gru.step());
  const start = performance.now();
  let count = 0;
  for (; performance.now() - start < RATE_SECONDS * 1000; count++) await gru.step();
  const rate = (1000 * count) / (performance.now() - start);
  await gru.close();
  return { losses, rate: Math.round(rate) };
}

/** MiB that are tried. */
const SIZES = [128, 256, 512, 1024, 2048];

async function largestTensor(device: DeviceName): Promise<number> {
  const { broadcastTo, f32, lower, mul, Session, slice, trace } = await import('../tensor/index.js');
  let largest = 0;
  for (const size of SIZES) {
    const program = trace({ x: f32(1) }, ({ x }) => {
      const many = broadcastTo(x, [size * 2 ** 18]);
      return { out: slice(mul(many, many), 0, 0, 1) };
    });
    const session = await Session.create(lower(program, { device }));
    try {
      await session.run({ x: { data: Float32Array.of(1), shape: [1] } });
      largest = size;
    } catch {
      break;
    } finally {
      await session.close();
    }
  }
  return largest;
}

/** A GRU that `tcts doctor` measures with. */
interface MeasuredGru {
  readonly steps: number;
  readonly batch: number;
  readonly hidden: number;
  readonly layers: number;
  readonly workers?: number;
  readonly device?: DeviceName;
}

/** Its training on random numbers: `step` makes one Adam update and returns the loss. */
async function startGru({ steps, batch, hidden, layers, workers, device }: MeasuredGru) {
  const [{ gru, linear }, { Training }, { Random }, { f32, mul, square, squeeze, sub, sum }] = await Promise.all([
    import('../nn/index.js'),
    import('../optim/index.js'),
    import('../random.js'),
    import('../tensor/index.js'),
  ]);
  const training = await Training.create({
    model: (p, { x, y }) => {
      const { last } = gru(p.under('gru'), x, { hidden, layers });
      const error = sub(squeeze(linear(p.under('out'), last[layers - 1], 1), 1), y);
      return { loss: mul(sum(square(error)), 1 / batch) };
    },
    inputs: { x: f32(steps, 'B', 5), y: f32('B') },
    random: new Random('doctor'),
    optimizer: { name: 'adam' },
    workers,
    device,
  });
  const random = new Random('data');
  const normal = (...shape: number[]): { data: Float32Array; shape: number[] } => {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
    random.fillNormal(data, 0, 1);
    return { data, shape };
  };
  const data = { x: normal(steps, batch, 5), y: normal(batch) };
  return {
    step: async (): Promise<number> => (await training.step(data, 1e-3)).loss,
    close: () => training.close(),
  };
}
