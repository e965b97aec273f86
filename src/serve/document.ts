import { createHash } from 'node:crypto';

export interface Document {
  readonly html: string;
  /** Of the one script that is not a file, for the content security policy. */
  readonly scriptHash: string;
}

/** The page itself: everything in it is made by `/page/main.js`. */
export function pageDocument(importMap: Readonly<Record<string, string>>): Document {
  const imports = JSON.stringify({ imports: importMap });
  return {
    scriptHash: `sha256-${createHash('sha256').update(imports).digest('base64')}`,
    html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tcts</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page/style.css">
<script type="importmap">${imports}</script>
<script type="module" src="/page/main.js"></script>
</head>
<body><noscript>This page needs JavaScript.</noscript></body>
</html>
`,
  };
}
