/**
 * Writes the live page of the site, after typedoc: the page of `tcts serve` as static files, with the bundled model,
 * which runs in the visitor's browser. Any web server will do; nothing is sent to it.
 *
 *     node docs/typedoc/live.mjs [FOLDER]
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtInModel } from '../../dist/cli/names.js';
import { RunDescriptions, TranslationRuns } from '../../dist/serve/run-folders.js';
import { exportTranslation } from '../../dist/translate/export.js';

const page = fileURLToPath(new URL('../../dist/page', import.meta.url));
const live = process.argv[2] ?? fileURLToPath(new URL('../../dist/site/live', import.meta.url));
const files = join(live, 'files');
rmSync(live, { recursive: true, force: true });

for (const name of readdirSync(page).filter((file) => !file.endsWith('.gz'))) cpSync(join(page, name), join(live, name));
// Not named .gz: some servers would undo the compression, others not.
for (const [runtime, device, model] of [
  ['ort-wasm', 'cpu', join(files, 'built-in')],
  ['ort-webgpu', 'webgpu', join(files, 'webgpu/built-in')],
]) {
  mkdirSync(model, { recursive: true });
  cpSync(join(page, `${runtime}.wasm.gz`), join(files, `${runtime}.bin`));
  exportTranslation(builtInModel.folder, model, { beam: 1, device });
  writeFileSync(join(model, 'files.json'), JSON.stringify(readdirSync(model)));
}
const offer = await new TranslationRuns(new RunDescriptions()).offer(new Map([['built-in', builtInModel.folder]]), ['page'], builtInModel);
writeFileSync(join(files, 'translation.json'), JSON.stringify(offer));
writeFileSync(
  join(live, 'index.html'),
  `<!doctype html>
<html lang="en" data-files="files">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Translate · tcts</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="style.css">
<script type="module" src="main.js"></script>
</head>
<body>
<header><h1>tcts</h1><nav aria-label="Site"><a href="../index.html">Documentation</a></nav></header>
<div id="app"><noscript>This page needs JavaScript.</noscript></div>
</body>
</html>
`,
);
