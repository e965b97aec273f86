/**
 * Makes a site of the guides, the results and the API reference: a plugin of typedoc. A page is named by its first heading
 * and has the address of its file; above the list of pages stands the way to the live page (`live.mjs`).
 */
import { basename, dirname } from 'node:path';
import { Converter, JSX, KindRouter } from 'typedoc';

export function load(app) {
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_, document) => {
    document.frontmatter.group = folderOf(document) === 'results' ? 'Results' : 'Guides';
    const heading = /^\s*# (.+)\n/.exec(document.content[0].text);
    if (heading === null) throw new Error(`${fileOf(document)}: expected a heading in the first line`);
    document.name = heading[1];
  });
  app.renderer.defineRouter('guides', GuidesRouter);
  app.renderer.hooks.on('sidebar.begin', (context) =>
    JSX.createElement(
      'a',
      { class: 'live-link', href: context.relativeURL('live/index.html') },
      '▶ Try it: a model in your browser',
    ),
  );
}

class GuidesRouter extends KindRouter {
  getIdealBaseName(reflection) {
    if (!reflection.isDocument()) return super.getIdealBaseName(reflection);
    const name = basename(fileOf(reflection), '.md').toLowerCase();
    return `${folderOf(reflection) === 'results' ? 'results' : 'guides'}/${name === 'readme' ? 'index' : name}`;
  }
}

const fileOf = (document) => document.project.files.getReflectionPath(document);

const folderOf = (document) => basename(dirname(fileOf(document)));
