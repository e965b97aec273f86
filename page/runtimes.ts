import type { InferenceSession } from 'onnxruntime-web';
import type { Value } from 'tcts/tensor/index.js';
import { siteFiles } from './api.js';

/** What computes in the page. */
export type PageDevice = 'webgpu' | 'wasm';

/** A device of the page, and what it is called there. */
export interface ChosenDevice {
  readonly device: PageDevice;
  readonly title: string;
}

/**
 * WebGPU if the browser has a real graphics card, otherwise WebAssembly. `?device=` in the address overrides this and
 * may request a software card. A device that has failed in this page is not used again.
 */
export async function chooseDevice(): Promise<ChosenDevice> {
  const wanted = new URLSearchParams(location.search).get('device') ?? 'auto';
  if (wanted === 'wasm') return webAssembly;
  if (wanted !== 'auto' && wanted !== 'webgpu') {
    throw new Error(`the address asks for the device “${wanted}”, expected auto, webgpu or wasm`);
  }
  try {
    if (failure !== undefined) throw failure;
    const card = await findCard();
    if (card !== undefined && (wanted === 'webgpu' || !card.software)) {
      return { device: 'webgpu', title: `WebGPU (${card.name})` };
    }
  } catch (error) {
    const { message } = error as Error;
    if (wanted === 'webgpu') throw new Error(`${message}; without ?device=webgpu this page uses WebAssembly`);
    return { ...webAssembly, title: `WebAssembly, because ${message}` };
  }
  if (wanted === 'auto') return webAssembly;
  throw new Error(
    'this browser offers no graphics card through WebGPU; without ?device=webgpu this page uses WebAssembly',
  );
}

const webAssembly: ChosenDevice = { device: 'wasm', title: 'WebAssembly' };

/** Why WebGPU is no longer used. */
let failure: DeviceFault | undefined;

/** The graphics card of WebGPU; undefined: the browser has no WebGPU, or no card for it. */
async function findCard(): Promise<{ name: string; software: boolean } | undefined> {
  const { gpu } = navigator as { gpu?: Gpu };
  try {
    const adapter = await gpu?.requestAdapter();
    if (adapter === undefined || adapter === null) return undefined;
    // The runtime would not say why a card refuses.
    (await adapter.requestDevice()).destroy();
    const { vendor = '', architecture = '', description = '' } = adapter.info ?? {};
    // Browsers reveal little about the card, to prevent fingerprinting.
    const known = description || `${vendor} ${architecture}`.trim() || 'a card without a name';
    const software = adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter ?? false;
    return { name: software ? `${known}, in software` : known, software };
  } catch (error) {
    throw new DeviceFault('webgpu', error);
  }
}

/** What is used of `navigator.gpu`, which TypeScript does not know. */
interface Gpu {
  requestAdapter(): Promise<Adapter | null>;
}

interface Adapter {
  readonly info?: {
    readonly vendor?: string;
    readonly architecture?: string;
    readonly description?: string;
    readonly isFallbackAdapter?: boolean;
  };
  /** Where browsers had it first. */
  readonly isFallbackAdapter?: boolean;
  requestDevice(): Promise<{ destroy(): void }>;
}

/** A device cannot be used, or failed. */
export class DeviceFault extends Error {
  constructor(device: PageDevice, cause: unknown) {
    super(`${device === 'webgpu' ? 'WebGPU' : 'WebAssembly'} failed: ${reasonOf(cause)}`, { cause });
  }
}

function reasonOf(cause: unknown): string {
  // The runtime throws a number where it means an object of its own language.
  if (!(cause instanceof Error)) return 'the runtime does not say why';
  const { message } = cause;
  if (/device.*lost/i.test(message)) return 'the graphics card was lost';
  return message.split('\n')[0];
}

/** What the runtime writes to the console: not that it leaves arithmetic on shapes to WebAssembly. */
const ERRORS = 3;

type Ort = typeof import('onnxruntime-web');

/** ONNX Runtime on a device of the page. Each has its own file, which is loaded when it is first used. */
export class Runtime {
  private static readonly loaded = new Map<PageDevice, Promise<Runtime>>();
  /** It has failed: what it has opened is no longer usable. */
  readonly ended: Promise<void>;
  private end!: () => void;
  /** The end of what was started last. */
  private last: Promise<unknown> = Promise.resolve();
  /** Rejects when the card is lost; undefined before there is one. */
  private lost: Promise<never> | undefined;

  private constructor(
    readonly device: PageDevice,
    private readonly ort: Ort,
  ) {
    this.ended = new Promise((resolve) => {
      this.end = resolve;
    });
  }

  static load(device: PageDevice): Promise<Runtime> {
    const known = Runtime.loaded.get(device);
    if (known !== undefined) return known;
    const loading = load(device).then((ort) => new Runtime(device, ort));
    Runtime.loaded.set(device, loading);
    loading.catch(() => Runtime.loaded.delete(device));
    return loading;
  }

  /** Loads a program that was exported for this device. */
  async open(onnx: Uint8Array): Promise<InferenceSession> {
    // WebAssembly computes what WebGPU has no kernel for. It is not listed as well: the runtime would silently use it
    // instead of a WebGPU that fails.
    const options = { executionProviders: [this.device], logSeverityLevel: ERRORS } as const;
    const session = await this.alone(() => this.ort.InferenceSession.create(onnx, options));
    if (this.device === 'webgpu' && this.lost === undefined) {
      this.lost = this.loss();
      this.lost.catch(() => undefined); // it may happen while nobody waits
    }
    return session;
  }

  async run(
    session: InferenceSession,
    feeds: Readonly<Record<string, Value>>,
    names: readonly string[],
  ): Promise<Record<string, Value>> {
    const given = Object.entries(feeds).map(([name, value]) => [name, this.tensor(value)]);
    const outputs = await this.alone(() => session.run(Object.fromEntries(given), names));
    return Object.fromEntries(
      names.map((name) => {
        const { data, dims } = outputs[name];
        const wide = data instanceof Int32Array ? BigInt64Array.from(data, BigInt) : data;
        return [name, { data: wide as Value['data'], shape: dims }];
      }),
    );
  }

  private tensor({ data, shape }: Value) {
    const { Tensor } = this.ort;
    if (!(data instanceof BigInt64Array)) return new Tensor('float32', data as Float32Array, [...shape]);
    // Programs for WebGPU have 32-bit integers instead of 64-bit ones.
    return this.device === 'webgpu'
      ? new Tensor('int32', Int32Array.from(data, Number), [...shape])
      : new Tensor('int64', data, [...shape]);
  }

  /**
   * One call at a time: the runtime is not reentrant while it waits for the card. A lost card answers
   * nothing: pending calls fail, and it is not used again.
   */
  private alone<T>(call: () => Promise<T>): Promise<T> {
    const called = this.last.then(() => {
      if (this.device === 'webgpu' && failure !== undefined) throw failure;
      return this.lost === undefined ? call() : Promise.race([this.lost, call()]);
    });
    const result = called.catch((error) => {
      throw this.failed(error);
    });
    this.last = result.catch(() => undefined);
    return result;
  }

  private failed(error: unknown): DeviceFault {
    const fault = error instanceof DeviceFault ? error : new DeviceFault(this.device, error);
    if (this.device === 'webgpu') failure ??= fault;
    this.end();
    return fault;
  }

  /** Rejects when the card is lost. */
  private async loss(): Promise<never> {
    const { lost } = (await this.ort.env.webgpu.device) as { lost: Promise<unknown> };
    await lost;
    throw this.failed(new Error('the device was lost'));
  }
}

async function load(device: PageDevice): Promise<Ort> {
  const ort = await (device === 'webgpu' ? import('onnxruntime-web/webgpu') : import('onnxruntime-web/wasm'));
  // One thread: more would need SharedArrayBuffer, which only isolated pages have.
  ort.env.wasm.numThreads = 1;
  if (siteFiles === undefined) ort.env.wasm.wasmPaths = { wasm: `/page/ort-${device}.wasm` };
  else ort.env.wasm.wasmBinary = await unpacked(`${siteFiles}/ort-${device}.bin`);
  return ort;
}

/** The runtime of a static site, whose hosts may compress nothing: it is kept compressed (4 MB instead of 14). */
async function unpacked(path: string): Promise<ArrayBuffer> {
  const { body, ok, status } = await fetch(path);
  if (!ok || body === null) throw new Error(`the runtime cannot be loaded: the server answers ${status}`);
  return new Response(body.pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}
