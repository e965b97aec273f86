import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, it } from 'vitest';

/** SwiftShader, a graphics card in software that comes with Debian's chromium. */
const DRIVER = '/usr/lib/chromium/vk_swiftshader_icd.json';

/** Vulkan's loader, which finds the driver: Debian's libvulkan1. */
const LOADERS = ['x86_64-linux-gnu', 'aarch64-linux-gnu'].map((folder) => `/usr/lib/${folder}/libvulkan.so.1`);

/** Whether there is a device to test with. */
export const hasDevice = existsSync(DRIVER) && LOADERS.some((file) => existsSync(file));
const NEEDED = `a software device needs ${DRIVER} of the package chromium, and the package libvulkan1`;
if (!hasDevice && process.env.CI) throw new Error(`CI must test devices: ${NEEDED}`);
if (!hasDevice) console.warn(`the tests of devices are skipped: ${NEEDED}`);

/** What a process needs to find the software device; the driver asks for a folder, any one. */
export const deviceEnvironment = { VK_ICD_FILENAMES: DRIVER, XDG_RUNTIME_DIR: tmpdir() } as const;

/** `describe` on the software device, skipped if there is none. It compiles every kernel when it is first needed. */
export function describeOnDevice(name: string, body: () => void | Promise<void>): void {
  if (!hasDevice) {
    describe.skip(name, () => it('needs a software device', () => {}));
    return;
  }
  Object.assign(process.env, deviceEnvironment);
  describe(name, body);
}
