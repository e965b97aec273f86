import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Reads a declaration file. */
type Read = (file: string) => string;

/** Where a public name is declared, and under which name. */
interface Declared {
  readonly file: string;
  readonly name: string;
}

/** The names that a declaration file exports, followed to their declarations. */
function exportsOf(file: string, read: Read): Map<string, Declared> {
  const text = read(file);
  const found = new Map<string, Declared>();
  const at = (path: string) => resolve(dirname(file), path.replace(/\.js$/, '.d.ts'));
  for (const [, name] of text.matchAll(DECLARATION)) found.set(name, { file, name });
  for (const [, path] of text.matchAll(/^export \* from '(\.[^']+)';/gm)) {
    for (const [name, declared] of exportsOf(at(path), read)) found.set(name, declared);
  }
  for (const [, names, path] of text.matchAll(/^export (?:type )?\{([^}]*)\} from '(\.[^']+)';/gm)) {
    const there = exportsOf(at(path), read);
    for (const entry of names.split(',').filter((one) => one.trim() !== '')) {
      const [own, alias = own] = entry
        .trim()
        .replace(/^type /, '')
        .split(' as ');
      found.set(alias, there.get(own) ?? { file: at(path), name: own });
    }
  }
  return found;
}

const EXPORT = 'export (?:declare )?(?:abstract )?(?:const|let|function|class|interface|type|enum)';
const DECLARATION = new RegExp(`^${EXPORT} (\\w+)`, 'gm');

/** Public names, and methods of public classes and interfaces, without a sentence that says what they are. */
function undocumented(entry: string, read: Read): string[] {
  const place = (file: string, name: string) => `${relative(root, file)}: ${name}`;
  return [...exportsOf(entry, read).values()].flatMap(({ file, name }) => {
    const lines = read(file).split('\n');
    const start = lines.findIndex((line) => new RegExp(`^${EXPORT} ${name}\\b`).test(line));
    if (start < 0) return [place(file, `${name}, whose declaration was not found`)];
    const own = isDocumented(lines, start) ? [] : [place(file, name)];
    return [...own, ...silentMethods(lines, start, file, read).map((method) => place(file, `${name}.${method}`))];
  });
}

/** A method that a parent documents needs no sentence of its own. */
function silentMethods(lines: readonly string[], start: number, file: string, read: Read): string[] {
  if (!/\b(class|interface) /.test(lines[start])) return [];
  const end = lines.indexOf('}', start);
  const silent: string[] = [];
  for (let i = start + 1; i < end; i++) {
    const method = /^ {4}(?:static |readonly )*(\w+)\??(?:[(<]|: \(.*\) => )/.exec(lines[i])?.[1];
    if (method === undefined || method === 'constructor' || isDocumented(lines, i)) continue;
    // Of an overloaded method, the first form.
    if (silent.includes(method) || lines.slice(start, i).some((line) => line.startsWith(`    ${method}(`))) continue;
    silent.push(method);
  }
  const parents = parentsOf(lines[start]);
  return silent.filter((method) => !parents.some((parent) => isDocumentedBy(parent, method, file, read)));
}

function parentsOf(head: string): string[] {
  return [...(/(?:implements|extends) (.*) \{$/.exec(head)?.[1] ?? '').matchAll(/\w+/g)].map(String);
}

function isDocumentedBy(parent: string, method: string, file: string, read: Read): boolean {
  const imported = new RegExp(`^import .*\\b${parent}\\b.* from '(\\.[^']+)';`, 'm').exec(read(file))?.[1];
  const there = imported === undefined ? file : resolve(dirname(file), imported.replace(/\.js$/, '.d.ts'));
  const { file: declared = there } = exportsOf(there, read).get(parent) ?? {};
  const lines = read(declared).split('\n');
  const start = lines.findIndex((line) => new RegExp(`(class|interface) ${parent}\\b`).test(line));
  if (start < 0) return false;
  const end = lines.indexOf('}', start);
  const at = lines.findIndex((line, i) => i > start && i < end && new RegExp(`^ {4}${method}\\b`).test(line));
  if (at >= 0) return isDocumented(lines, at);
  return parentsOf(lines[start]).some((one) => isDocumentedBy(one, method, declared, read));
}

/** Whether a doc comment with a sentence, not only tags, stands right above a line. */
function isDocumented(lines: readonly string[], at: number): boolean {
  if (!lines[at - 1]?.trimEnd().endsWith('*/')) return false;
  let first = at - 1;
  while (first > 0 && !lines[first].trimStart().startsWith('/**')) first--;
  const text = lines.slice(first, at).map((line) => line.replace(/\/\*\*|\*\/|^\s*\*/g, '').trim());
  return text.find((line) => line !== '')?.startsWith('@') === false;
}

it('every public name of every entry is documented', () => {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const entries = Object.values<{ types?: string }>(exports).flatMap(({ types }) => types ?? []);
  expect(entries.length).toBeGreaterThan(10);
  expect(existsSync(join(root, entries[0])), 'run "npm run build" first').toBe(true);
  const texts = new Map<string, string>();
  const read = (file: string): string => {
    const text = texts.get(file) ?? readFileSync(file, 'utf8');
    texts.set(file, text);
    return text;
  };
  expect(new Set(entries.flatMap((entry) => undocumented(join(root, entry), read)))).toEqual(new Set());
});

it('a name, a method or a name behind a list without a sentence is found', () => {
  const files: Record<string, string> = {
    '/index.d.ts': "export * from './all.js';\nexport { type Told, silent as quiet } from './some.js';\n",
    '/all.d.ts': '/** Said. */\nexport declare const said: 1;\nexport interface Bare {\n    x: 1;\n}\n',
    '/some.d.ts': [
      '/** @param x no sentence */',
      'export declare function silent(x: 1): void;',
      '/** Said. */',
      'export declare class Told implements Parent {',
      '    private hidden;',
      '    constructor();',
      '    close(): void;',
      '    inherited(): void;',
      '}',
      '/** Not exported from the entry. */',
      'export interface Parent {',
      '    /** Said. */',
      '    inherited(): void;',
      '}',
      'export declare const notListed: 1;',
      '',
    ].join('\n'),
  };
  const found = undocumented('/index.d.ts', (file) => files[file]).map((line) => line.split(': ')[1]);
  expect(found.sort()).toEqual(['Bare', 'Told.close', 'silent']);
});
