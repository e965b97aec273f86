import type { InferenceSession } from 'onnxruntime-web';
import type { Value } from 'tcts/tensor/index.js';
import { siteFiles } from './api.js';

/** What computes in the page. */
export type PageDevice = 'webgpu' | 'wasm';

/** A device of the page, and what it is called there. */
export interface ChosenDevice {
  readonly device: PageDevice;
  readonly title: string;
  /** The address asks for it: there is no other then. */
  readonly asked: boolean;
}

/** WebGPU where the browser has a real graphics card for it, else WebAssembly; `?device=` in the address decides first. */
export async function chooseDevice(): Promise<ChosenDevice> {
  const wanted = new URLSearchParams(location.search).get('device') ?? 'auto';
  if (wanted === 'wasm') return { ...webAssembly, asked: true };
  if (wanted !== 'auto' && wanted !== 'webgpu') {
    throw new Error(`the address asks for the device “${wanted}”, expected auto, webgpu or wasm`);
  }
  const asked = wanted === 'webgpu';
  const card = await findCard();
  if (card === undefined && asked) {
    throw new Error('this browser offers no graphics card through WebGPU: ?device=wasm translates with WebAssembly');
  }
  if (card === undefined || (card.software && !asked)) return webAssembly;
  return { device: 'webgpu', title: `WebGPU (${card.name})`, asked };
}

export const webAssembly: ChosenDevice = { device: 'wasm', title: 'WebAssembly', asked: false };

/** The graphics card of WebGPU; undefined: the browser has no WebGPU, or no card for it. */
async function findCard(): Promise<{ name: string; software: boolean } | undefined> {
  const { gpu } = navigator as { gpu?: Gpu };
  const adapter = await gpu?.requestAdapter().catch(() => null);
  if (adapter === undefined || adapter === null) return undefined;
  const { vendor = '', architecture = '', description = '' } = adapter.info ?? {};
  // Browsers tell little of the card, so that pages cannot be told apart by it.
  const known = description || `${vendor} ${architecture}`.trim() || 'a card without a name';
  const software = adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter ?? false;
  return { name: software ? `${known}, in software` : known, software };
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
}

/** A device cannot be used, or failed. */
export class DeviceFault extends Error {
  constructor(device: PageDevice, cause: unknown) {
    const [reason] = (cause instanceof Error ? cause.message : String(cause)).split('\n');
    super(`${device === 'webgpu' ? 'WebGPU' : 'WebAssembly'} failed: ${reason}`, { cause });
  }
}

/** What the runtime writes to the console: not that it leaves arithmetic on shapes to WebAssembly. */
const ERRORS = 3;

type Ort = typeof import('onnxruntime-web');

/** ONNX Runtime on a device of the page. Each has a file of its own, which is loaded when it is first used. */
export class Runtime {
  private static readonly loaded = new Map<PageDevice, Promise<Runtime>>();
  /** The end of what was begun last. */
  private last: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly device: PageDevice,
    private readonly ort: Ort,
  ) {}

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
    // WebAssembly computes what WebGPU has no kernel for. It is not named beside it: the runtime would take it in the
    // place of a WebGPU that fails, without a word.
    const options = { executionProviders: [this.device], logSeverityLevel: ERRORS } as const;
    return this.alone(() => this.ort.InferenceSession.create(onnx, options));
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
    // Programs for WebGPU have 32-bit integers in the place of 64-bit ones.
    return this.device === 'webgpu'
      ? new Tensor('int32', Int32Array.from(data, Number), [...shape])
      : new Tensor('int64', data, [...shape]);
  }

  /** One call after the other: the runtime cannot be entered again while it waits for the card. */
  private alone<T>(call: () => Promise<T>): Promise<T> {
    const result = this.last.then(call).catch((error) => {
      throw new DeviceFault(this.device, error);
    });
    this.last = result.catch(() => undefined);
    return result;
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
