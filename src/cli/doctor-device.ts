import type { DeviceName, GraphicsCard } from '../devices.js';
import { startGru } from './doctor-gru.js';

/** What `tcts doctor` found about a device. */
export interface DeviceCheck {
  readonly device: DeviceName;
  readonly cards: readonly GraphicsCard[];
  /** Largest tensor, of those that were tried, in MiB. */
  readonly largestMiB: number;
  /** Largest relative difference of the losses of some updates from those of the CPU. */
  readonly difference: number;
  /** Updates a second of a small GRU, on the CPU and on the device. */
  readonly updatesPerSecond: { readonly cpu: number; readonly device: number };
}

/** Trains a small GRU on the CPU and on a device, and looks how large a tensor may be. */
export async function checkDevice(device: DeviceName, cards: readonly GraphicsCard[]): Promise<DeviceCheck> {
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

const UPDATES = 5;
const SECONDS = 1;

async function trainSome(device: DeviceName): Promise<{ losses: number[]; rate: number }> {
  const gru = await startGru({ steps: 4, batch: 64, hidden: 8, layers: 1, device });
  const losses: number[] = [];
  for (let i = 0; i < UPDATES; i++) losses.push(await gru.step());
  const start = performance.now();
  let count = 0;
  for (; performance.now() - start < SECONDS * 1000; count++) await gru.step();
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
