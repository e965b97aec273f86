import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** Version of tcts. */
export const toolVersion = readVersion(new URL('../../package.json', import.meta.url));

/** Versions that can change a run's last bits. */
export function runtimeVersions(): { node: string; onnxruntime: string } {
  const onnxruntime = createRequire(import.meta.url).resolve('onnxruntime-node/package.json');
  return { node: process.versions.node, onnxruntime: readVersion(onnxruntime) };
}

/** Whether one version can continue what the other saved: major and minor numbers must be equal. */
export function compatible(a: string, b: string): boolean {
  const series = (version: string) => version.split('.').slice(0, 2).join('.');
  return series(a) === series(b);
}

function readVersion(file: string | URL): string {
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
