import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, cpus, freemem, totalmem } from 'node:os';
import type { Command } from 'commander';
import { commonKeys, workersOf } from '../run/config/load.js';
import { toolVersion } from '../run/versions.js';
import { IR_VERSION, OPSET } from '../tensor/onnx.js';
import { colorsFor } from './terminal.js';

/** What `tcts doctor` found; `--json` prints it as it is. */
export interface Diagnosis {
  readonly versions: { tcts: string; node: string; onnxruntime: string; onnxIr: number; onnxOpset: number };
  readonly machine: { cpu: string; cores: number; simd: readonly string[]; memoryGiB: number; freeGiB: number };
  /** What a configuration that says nothing of it gets: cores in use, and workers that share each batch. */
  readonly defaults: { threads: number; workers: number };
  readonly speed: {
    gemmGflops: Readonly<Record<string, number>>;
    gruSamplesPerSecond: Readonly<Record<string, number>>;
  };
  /** What is absent, and how to get it. Empty when all is well. */
  readonly missing: readonly { what: string; needed: string; remedy: string; fatal: boolean }[];
}

export function registerDoctor(program: Command): void {
  program
    .command('doctor')
    .description('Check the installation: versions, cores, SIMD features, threads, speed, and what is missing.')
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
  const { gemmSpeed, gruSpeed } = broken
    ? { gemmSpeed: undefined, gruSpeed: undefined }
    : await import('./speed-check.js');
  const counts = [...new Set([1, cores])];
  const measure = async (speed: ((count: number) => Promise<number>) | undefined): Promise<Record<string, number>> => {
    const found: Record<string, number> = {};
    if (speed !== undefined) for (const count of counts) found[count] = await speed(count);
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
    missing,
  };
}

function describe({ versions, machine, defaults, speed, missing }: Diagnosis): string {
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
  ];
  const { bold, green, red, yellow } = colorsFor(process.stdout);
  const table = rows.map(([name, value]) => `${bold(name.padEnd(15))} ${value}\n`).join('');
  const gaps = missing.map(
    ({ what, needed, remedy, fatal }) =>
      `${fatal ? red('missing') : yellow('optional')} ${what}: ${needed}; ${remedy}\n`,
  );
  return table + (gaps.join('') || `${green('nothing is missing')}\n`);
}

function whatIsMissing(): Diagnosis['missing'] {
  const found: { what: string; needed: string; remedy: string; fatal: boolean }[] = [];
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
