import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** Version of tcts. */
export const toolVersion = readVersion(new URL('../../package.json', import.meta.url));

/** What a run was made with, as far as it can change its last bits. */
export function runtimeVersions(): { node: string; onnxruntime: string } {
  const onnxruntime = createRequire(import.meta.url).resolve('onnxruntime-node/package.json');
  return { node: process.versions.node, onnxruntime: readVersion(onnxruntime) };
}

/** Whether one version can continue with what the other has saved: those of one major and minor number can. */
export function compatible(a: string, b: string): boolean {
  const series = (version: string) => version.split('.').slice(0, 2).join('.');
  return series(a) === series(b);
}

function readVersion(file: string | URL): string {
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
