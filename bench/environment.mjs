/** What the peers run in, and on which machine. */

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';

/**
 * Ways to run a peer. Which one is fastest depends on the model and on what else the machine does: on idle cores of
 * an EPYC, PyTorch's GRU takes 89 ms with two threads that sleep and 51 ms with one.
 */
export const PEER_WAYS = [
  { threads: 2, spin: false },
  { threads: 2, spin: true },
  { threads: 1, spin: false },
];

/**
 * The environment in which Debian's PyTorch is fast. As installed it does not recognise newer CPUs and takes kernels
 * for older ones: on an AVX-512 machine the products alone are 5 times slower.
 *
 * @param {Partial<typeof PEER_WAYS[number]>} [way]
 */
export function peerEnvironment({ threads = 2, spin = false } = {}) {
  return {
    ...process.env,
    ...kernelChoice(cpuFlags()),
    OMP_NUM_THREADS: String(threads),
    // Threads sleep when they have nothing to do, or wait for some milliseconds first.
    ...(spin ? {} : { OMP_WAIT_POLICY: 'PASSIVE' }),
    ...KEEP_FREED_MEMORY,
    PYTHONDONTWRITEBYTECODE: '1',
  };
}

/**
 * By default glibc returns large arrays to the system and gets them back page by page, at every step. Keeping them
 * makes the Transformer step 4 to 6 % cheaper and its peak memory higher (figures in peers/transformer.py).
 */
const KEEP_FREED_MEMORY = {
  MALLOC_MMAP_MAX_: '0',
  MALLOC_TRIM_THRESHOLD_: '100000000000',
};

/** @param {Set<string>} flags */
function kernelChoice(flags) {
  if (['avx512f', 'avx512bw', 'avx512dq', 'avx512vl'].every((flag) => flags.has(flag))) {
    return { OPENBLAS_CORETYPE: 'SkylakeX', ATEN_CPU_CAPABILITY: 'avx512' };
  }
  if (flags.has('avx2') && flags.has('fma')) return { OPENBLAS_CORETYPE: 'Haswell', ATEN_CPU_CAPABILITY: 'avx2' };
  return {};
}

function cpuFlags() {
  if (!existsSync('/proc/cpuinfo')) return new Set();
  const line = /^flags\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'));
  return new Set(line?.[1].trim().split(' '));
}

/** The first Python that has PyTorch: $PYTHON, Debian's, the one on the path. */
export function findPython() {
  return [process.env.PYTHON, '/usr/bin/python3', 'python3']
    .filter((python) => python !== undefined)
    .find((python) => spawnSync(python, ['-c', 'import torch'], { stdio: 'ignore' }).status === 0);
}

export function machine() {
  const [cpu] = os.cpus();
  return {
    cpu: cpu?.model.trim() ?? 'unknown',
    cores: os.cpus().length,
    simd: kernelChoice(cpuFlags()).ATEN_CPU_CAPABILITY ?? 'no avx2',
    load: Number(os.loadavg()[0].toFixed(2)),
    node: process.version,
    onnxruntime: createRequire(import.meta.url)('onnxruntime-node/package.json').version,
  };
}
