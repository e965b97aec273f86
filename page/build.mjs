/**
 * Bundles the page into dist/page: `main.js`, what runs a model in the page as a chunk of its own that is loaded when it
 * is first wanted, the style, and the WebAssembly of ONNX Runtime, compressed (14 MB become 4).
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
const runtime = createRequire(import.meta.url).resolve('onnxruntime-web/ort-wasm-simd-threaded.wasm');
writeFileSync(join(out, 'ort.wasm.gz'), gzipSync(readFileSync(runtime), { level: 9 }));
