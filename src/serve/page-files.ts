import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { builtFile } from '../files.js';

/** A file that the page may load. */
export interface PageFile {
  /** Compressed with gzip. */
  readonly bytes: Buffer<ArrayBuffer>;
  readonly type: string;
  readonly etag: string;
}

/**
 * The page and what it loads, by the path of the URL. Whatever is not here is not served: no path of a request is ever
 * joined to a folder.
 */
export function pageFiles(): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>();
  const add = (url: string, compressed: Buffer<ArrayBuffer>, type: string): void => {
    const digest = createHash('sha256').update(compressed).digest('base64url');
    files.set(url, { bytes: compressed, type, etag: `"${digest}"` });
  };
  add('/', gzipSync(DOCUMENT), TYPES['.html']);
  const folder = dirname(builtFile('page/main.js'));
  for (const name of readdirSync(folder)) {
    const content = readFileSync(join(folder, name));
    // The build has compressed what is large.
    const isCompressed = name.endsWith('.gz');
    const own = isCompressed ? name.slice(0, -'.gz'.length) : name;
    const type = TYPES[extname(own)];
    if (type !== undefined) add(`/page/${own}`, isCompressed ? content : gzipSync(content), type);
  }
  return files;
}

/** Type of a file of an exported model. */
export function modelFileType(name: string): string {
  return TYPES[extname(name)] ?? 'application/octet-stream';
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
};

/** Everything in the page is made by `/page/main.js`. */
const DOCUMENT = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tcts</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page/style.css">
<script type="module" src="/page/main.js"></script>
</head>
<body><noscript>This page needs JavaScript.</noscript></body>
</html>
`;
