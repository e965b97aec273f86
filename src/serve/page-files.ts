import { readdirSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtFile } from '../built-file.js';

/** A file that the page may load. */
export interface PageFile {
  readonly path: string;
  readonly type: string;
}

export interface PageFiles {
  /** By the path of the URL. Whatever is not here is not served: no path of a request is ever joined to a folder. */
  readonly files: ReadonlyMap<string, PageFile>;
  /** Where the page's modules find what they import by name. */
  readonly importMap: Readonly<Record<string, string>>;
}

/**
 * The page's own modules and style, Preact, and with `models` also what runs a model in the page: the decoding and text
 * modules of this library, and ONNX Runtime.
 */
export function pageFiles(models: boolean): PageFiles {
  const files = new Map<string, PageFile>();
  const importMap: Record<string, string> = {};
  const add = (url: string, path: string): void => {
    const type = TYPES[extname(path)];
    if (type !== undefined) files.set(url, { path, type });
  };
  const addPackage = (name: string, path = fileURLToPath(import.meta.resolve(name))): void => {
    const url = `/lib/${name.replaceAll('@', '')}${extname(path)}`;
    importMap[name] = url;
    add(url, path);
  };
  addFolder(add, 'page/main.js', '/page');
  for (const name of ['preact', 'preact/hooks', 'htm']) addPackage(name);
  if (models) {
    importMap['tcts/'] = '/tcts/';
    add('/tcts/errors.js', builtFile('errors.js'));
    for (const file of ['metrics/latency.js', 'serve/live-sentence.js', 'serve/limits.js'])
      add(`/tcts/${file}`, builtFile(file));
    addFolder(add, 'translate/decode/stream.js', '/tcts/translate/decode');
    addFolder(add, 'translate/policies/spec.js', '/tcts/translate/policies');
    addFolder(add, 'translate/text/pipeline.js', '/tcts/translate/text');
    addPackage('@huggingface/tokenizers');
    addPackage('onnxruntime-web/wasm');
    const runtime = dirname(fileURLToPath(import.meta.resolve('onnxruntime-web/wasm')));
    for (const name of ['mjs', 'wasm'].map((end) => `ort-wasm-simd-threaded.${end}`))
      add(`/lib/${name}`, join(runtime, name));
  }
  return { files, importMap };
}

/** The files of the build that lie beside the given one. */
function addFolder(add: (url: string, path: string) => void, file: string, url: string): void {
  const path = dirname(builtFile(file));
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isFile()) add(`${url}/${entry.name}`, join(path, entry.name));
  }
}

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.wasm': 'application/wasm',
};
