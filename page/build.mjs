/**
 * Bundles the page into dist/page: `main.js`, what runs a model in the page as separate chunks that are loaded when
 * first needed, the style, and the WebAssembly of ONNX Runtime, compressed: without WebGPU (14 MB become 4), and
 * with it (27 become 7). Of the two builds with WebGPU this is the one for all browsers that have it; the other needs
 * WebAssembly that can be suspended.
 */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';

const here = fileURLToPath(new URL('.', import.meta.url));
const out = join(here, '../dist/page');
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

const bundle = await rolldown({
  input: join(here, 'main.ts'),
  platform: 'browser',
  tsconfig: join(here, 'tsconfig.json'),
  // Text that needs Jieba cannot be read in the page: the import fails, and the reason is shown.
  external: [/^@node-rs\/jieba/],
});
await bundle.write({ dir: out, format: 'esm', minify: true, entryFileNames: '[name].js', chunkFileNames: '[name].js' });
await bundle.close();

writeFileSync(join(out, 'style.css'), readFileSync(join(here, 'style.css')));
const { resolve } = createRequire(import.meta.url);
for (const [device, runtime] of [
  ['wasm', 'ort-wasm-simd-threaded.wasm'],
  ['webgpu', 'ort-wasm-simd-threaded.asyncify.wasm'],
]) {
  const content = readFileSync(resolve(`onnxruntime-web/${runtime}`));
  writeFileSync(join(out, `ort-${device}.wasm.gz`), gzipSync(content, { level: 9 }));
}
