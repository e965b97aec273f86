import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cpus, platform } from 'node:os';
import { basename, join } from 'node:path';
import { InputError } from './errors.js';

/** What a program can run on: this machine's processor, or a graphics card through WebGPU or CUDA. */
const deviceNames = ['cpu', 'webgpu', 'cuda'] as const;
/** One of them. */
export type DeviceName = (typeof deviceNames)[number];

/** What a user can choose: `auto` uses a device if it helps. */
export const deviceChoices = ['auto', ...deviceNames] as const;
/** One of those. */
export type DeviceChoice = (typeof deviceChoices)[number];

/** Number of parameters from which a model is faster on a card; smaller ones wait for each operation. */
const LARGE = 2_000_000;

/** The device for a model of this many parameters. */
export function deviceFor(choice: DeviceChoice, parameters: number): DeviceName {
  if (choice !== 'auto') return choice;
  return parameters >= LARGE && graphicsCards().some(({ software }) => !software) ? 'webgpu' : 'cpu';
}

/** A graphics card, or a software one. */
export interface GraphicsCard {
  readonly name: string;
  /** It runs on the processor: correct, but slow. */
  readonly software: boolean;
}

/** The graphics cards known to the operating system; WebGPU uses the first one its driver lists. */
export function graphicsCards(): GraphicsCard[] {
  const chosen = process.env.VK_ICD_FILENAMES ?? process.env.VK_DRIVER_FILES;
  if (chosen !== undefined && /swiftshader|lvp|lavapipe/i.test(chosen)) {
    return [{ name: `${basename(chosen)} (software)`, software: true }];
  }
  if (platform() === 'darwin') return [{ name: cpus()[0]?.model ?? 'Apple', software: false }];
  if (platform() === 'win32') return [{ name: 'the card of Direct3D 12', software: false }];
  return [...nvidiaCards(), ...otherCards()];
}

function nvidiaCards(): GraphicsCard[] {
  const folder = '/proc/driver/nvidia/gpus';
  return names(folder).map((card) => {
    const model = /^Model:\s*(.*)$/m.exec(textOf(join(folder, card, 'information')))?.[1];
    return { name: model ?? 'NVIDIA', software: false };
  });
}

/** Cards with a render node, by the vendor's number on the bus. */
function otherCards(): GraphicsCard[] {
  const folder = '/sys/class/drm';
  return names(folder)
    .filter((name) => name.startsWith('renderD'))
    .flatMap((name) => {
      const read = (file: string): string => textOf(join(folder, name, 'device', file)).trim();
      const vendor = VENDORS[read('vendor')];
      // Those of NVIDIA are listed by their own driver, with a name.
      return vendor === undefined || vendor === 'NVIDIA'
        ? []
        : [{ name: `${vendor} ${read('device')}`, software: false }];
    });
}

const VENDORS: Readonly<Record<string, string>> = {
  '0x10de': 'NVIDIA',
  '0x1002': 'AMD',
  '0x8086': 'Intel',
  '0x1414': 'Microsoft',
  '0x5143': 'Qualcomm',
};

const names = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder).sort() : []);

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** What a device needs, as advice. */
const NEEDED: Readonly<Record<Exclude<DeviceName, 'cpu'>, string>> = {
  webgpu:
    'expected a graphics card with a driver for Vulkan, Metal or Direct3D 12 (on Debian: mesa-vulkan-drivers, or the ' +
    "vendor's own; docs/devices.md)",
  cuda: "expected an NVIDIA card, CUDA and the runtime's own CUDA libraries (docs/devices.md)",
};

/** The error of a session that could not be started on a device, in one sentence; undefined: it has another cause. */
export function deviceMissing(device: DeviceName, error: unknown): InputError | undefined {
  if (device === 'cpu' || !(error instanceof Error)) return undefined;
  const { message } = error;
  if (!MISSING.test(message)) return undefined;
  return new InputError(`there is no device ${device} on this machine, ${NEEDED[device]}`, { key: 'device' });
}

/** Messages of the runtime if a device or its driver is missing. */
const MISSING =
  /Failed to get a WebGPU adapter|No supported adapters|Failed to load (?:shared )?library|cuda(?:rt|nn|blas)?\b.*(?:fail|not found|error)|OrtSessionOptionsAppendExecutionProvider/i;

/** An error of a device while computing, as one sentence; undefined: it was not the device. */
export function deviceFailure(device: DeviceName, error: unknown): DeviceError | undefined {
  if (device === 'cpu' || !(error instanceof Error)) return undefined;
  const [reason] = error.message.split('\n');
  const rest = 'what was saved is intact, go on from it with --device cpu, or with a smaller batch or model';
  if (/device.*lost/i.test(error.message)) return new DeviceError(`the device ${device} was lost: ${rest}`);
  if (FULL.test(error.message)) {
    const limit = /max buffer size limit \((\d+)\)|MaxBufferSize of (\d+)/i.exec(error.message);
    const most = limit === null ? '' : `, whose largest buffer has ${limit[1] ?? limit[2]} bytes`;
    return new DeviceError(`the device ${device} has no room for this program${most}: ${rest}`);
  }
  return new DeviceError(`the device ${device} failed (${reason}): ${rest}`);
}

const FULL = /out.of.*memory|Invalid Buffer|max buffer size|BindingSize|maxStorageBuffers|allocat/i;

/** A device failed in the middle of its work. */
export class DeviceError extends InputError {
  override readonly name = 'DeviceError';
}
