import { InputError } from '../errors.js';

/** What a program can run on: this machine's processor, or a graphics card through WebGPU or CUDA. */
export const deviceNames = ['cpu', 'webgpu', 'cuda'] as const;
export type DeviceName = (typeof deviceNames)[number];

/** What must be there for a device, in words that can be acted on. */
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
  if (!/adapter|no available backend|provider|\.so|\.dll|cuda|not (?:found|supported|available)/i.test(message)) {
    return undefined;
  }
  return new InputError(`there is no device ${device} on this machine, ${NEEDED[device]}`, { key: 'device' });
}

/** What went wrong while a device was computing, in one sentence; undefined: it was not the device. */
export function deviceFailure(device: DeviceName, error: unknown): DeviceError | undefined {
  if (device === 'cpu' || !(error instanceof Error)) return undefined;
  const [reason] = error.message.split('\n');
  const rest = 'what was saved is intact, go on from it with --device cpu, or with a smaller batch or model';
  if (/device.*lost/i.test(error.message)) return new DeviceError(`the device ${device} was lost: ${rest}`);
  if (FULL.test(error.message)) {
    const limit = /max buffer size limit \((\d+)\)|MaxBufferSize of (\d+)/i.exec(error.message);
    const most = limit === null ? '' : `, whose largest buffer has ${(limit[1] ?? limit[2]).toString()} bytes`;
    return new DeviceError(`the device ${device} has no room for this program${most}: ${rest}`);
  }
  return new DeviceError(`the device ${device} failed (${reason}): ${rest}`);
}

const FULL = /out.of.*memory|Invalid Buffer|max buffer size|BindingSize|maxStorageBuffers|allocat/i;

/** A device failed in the middle of its work. */
export class DeviceError extends Error {
  override readonly name = 'DeviceError';
}
