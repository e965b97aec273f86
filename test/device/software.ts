import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, it } from 'vitest';

/** SwiftShader, a graphics card in software that comes with Debian's chromium. */
const DRIVER = '/usr/lib/chromium/vk_swiftshader_icd.json';

/** Whether there is a device to test with. */
export const hasDevice = existsSync(DRIVER);
if (!hasDevice && process.env.CI) throw new Error(`CI must have a software device: ${DRIVER} of the package chromium`);
if (!hasDevice) console.warn(`there is no ${DRIVER}: the tests of devices are skipped`);

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
