import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const folders = ['', 'docs', 'docs/results', 'models'];
const pages = folders.flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name)),
);
const read = (page: string): string => readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');

/** Whether a page has a heading of that anchor, as GitHub and the site make it. */
function hasAnchor(page: string, anchor: string): boolean {
  const headings = [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, ''),
  );
  return headings.some((heading) => heading.replaceAll(' ', '-') === anchor);
}

test.each(pages)('the links of %s lead somewhere', (page) => {
  const links = [...read(page).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, link]) => link);
  const broken = links.filter((link) => {
    const [path, anchor] = link.split('#');
    const target = path === '' ? page : join(dirname(page), path);
    // A folder is a page on GitHub, and nothing on the site.
    const isFile = statSync(join(root, target), { throwIfNoEntry: false })?.isFile() ?? false;
    return !isFile || (anchor !== undefined && !hasAnchor(target, anchor));
  });
  expect(broken).toEqual([]);
});
