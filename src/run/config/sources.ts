import { readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, stringify } from 'yaml';
import { InputError, type Where } from '../../errors.js';
import { discriminator, dotted, isRecord, type KeySchema, membersFor, schemaAt } from './key-schema.js';

/** A configuration before validation: plain values, and the origin of each dotted key. */
export interface Source {
  readonly values: Record<string, unknown>;
  readonly places: ReadonlyMap<string, Where>;
}

export interface SourceOptions {
  /** Whether keys of the file may have dots, because they refer to keys of another file. Default false. */
  readonly dottedKeys?: boolean;
}

/** The file with everything it extends, then the `--set` assignments in order, each overriding the earlier ones. */
export function readSources(
  file: string,
  assignments: readonly string[],
  schema: KeySchema,
  options: SourceOptions = {},
): Source {
  const layers = [...readChain(file, options), ...assignments.map(readAssignment)];
  return layers.reduce((under, over) => overlay(under, over, schema));
}

/**
 * `under` overridden by `over`: maps are merged key by key; anything else (lists too) is replaced as a whole, and so is a map
 * that names another member of a union (`strategy.name`), since the keys of the former member have no meaning in it.
 */
export function overlay(under: Source, over: Source, schema: KeySchema): Source {
  const places = new Map(under.places);

  function lay(below: unknown, above: unknown, path: readonly string[], at: KeySchema | undefined): unknown {
    const key = path.join('.');
    const merged = isRecord(below) && isRecord(above) && !namesAnotherMember(at, below, above);
    if (!merged) for (const known of [...places.keys()]) if (isBelow(known, key)) places.delete(known);
    const place = over.places.get(key);
    if (place !== undefined) places.set(key, place);
    if (!isRecord(above)) return above;
    const result: Record<string, unknown> = merged ? { ...below } : {};
    for (const name of Object.keys(above)) {
      const inner = at === undefined ? undefined : schemaAt(at, [name], { ...result, ...above });
      result[name] = lay(result[name], above[name], [...path, name], inner);
    }
    return result;
  }

  return { values: lay(under.values, over.values, [], schema) as Record<string, unknown>, places };
}

function namesAnotherMember(schema: KeySchema | undefined, below: object, above: Record<string, unknown>): boolean {
  const key = schema && discriminator(schema);
  if (schema === undefined || key === undefined || above[key] === undefined) return false;
  const [member] = membersFor(schema, above);
  // A map without a member of its own, such as the start of an imported model, fits all that know its keys.
  if (!(key in below) && Object.keys(below).every((name) => member.properties?.[name] !== undefined)) return false;
  return membersFor(schema, below)[0] !== member;
}

function isBelow(key: string, ancestor: string): boolean {
  return ancestor === '' ? key !== '' : key.startsWith(`${ancestor}.`);
}

/** The file's layers, the most basic first. */
function readChain(
  file: string,
  options: SourceOptions,
  extendedBy: readonly { path: string; from: Where }[] = [],
): Source[] {
  const path = resolve(file);
  const from = extendedBy.at(-1)?.from;
  const cycle = extendedBy.findIndex((earlier) => earlier.path === path);
  if (cycle >= 0) {
    const names = [...extendedBy.slice(cycle).map((earlier) => earlier.path), path].map(shown);
    throw new InputError(`the files extend each other in a circle: ${names.join(' → ')}`, from);
  }
  const { values, places } = parseSource(readText(path, from), shown(path), options);
  if (!('extends' in values)) return [{ values, places }];

  const { extends: base, ...own } = values;
  const place = places.get('extends')!;
  if (typeof base !== 'string' || base === '') {
    throw new InputError(`expected the path of a file, found ${JSON.stringify(base)}`, { ...place, key: 'extends' });
  }
  const extending = [...extendedBy, { path, from: { ...place, key: 'extends' } }];
  const chain = readChain(resolve(dirname(path), base), options, extending);
  return [...chain, { values: own, places: new Map([...places].filter(([key]) => key !== 'extends')) }];
}

function readText(path: string, from: Where | undefined): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'does not exist' : (error as Error).message;
    throw new InputError(`the configuration file ${shown(path)} cannot be read: ${reason}`, from);
  }
}

/** One YAML text; `file` is its name in messages. */
export function parseSource(text: string, file: string, { dottedKeys = false }: SourceOptions = {}): Source {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [problem] = [...document.errors, ...document.warnings];
  const lineOf = (node: Node | null | undefined) => (node?.range ? lines.linePos(node.range[0]).line : 1);
  if (problem !== undefined) {
    const { line } = lines.linePos(problem.pos[0]);
    throw new InputError(`not valid YAML: ${problem.message.replace(/\.?\s*$/, '')}`, { file, line });
  }

  const places = new Map<string, Where>([['', { file, line: 1 }]]);
  const open = new Set<Node>();

  function plain(node: Node | null, path: string, recordPlaces: boolean): unknown {
    if (node === null) return null;
    if (isScalar(node)) return node.value;
    const target = isAlias(node) ? node.resolve(document) : node;
    if (target === undefined || open.has(target)) {
      throw new InputError('the alias does not stand for a complete value', { file, line: lineOf(node), key: path });
    }
    if (isScalar(target)) return target.value;
    open.add(target);
    const result = contents(target, path, recordPlaces && !isAlias(node));
    open.delete(target);
    return result;
  }

  function contents(node: Node, path: string, recordPlaces: boolean): unknown {
    if (isSeq(node)) {
      return node.items.map((item, i) => {
        const key = dotted(path, i);
        if (recordPlaces) places.set(key, { file, line: lineOf(item as Node) });
        return plain(item as Node | null, key, recordPlaces);
      });
    }
    if (!isMap(node)) throw new InputError('expected a value', { file, line: lineOf(node), key: path });
    const result: Record<string, unknown> = {};
    for (const pair of node.items) {
      const name = isScalar(pair.key) ? String(pair.key.value) : '';
      const line = lineOf(pair.key as Node);
      if (name === '' || name === '__proto__' || (name.includes('.') && !dottedKeys)) {
        const found = isScalar(pair.key) ? JSON.stringify(name) : 'a key that is not text';
        throw new InputError(`found ${found}, expected a key${dottedKeys ? '' : ' without dots'}`, {
          file,
          line,
          key: path,
        });
      }
      const key = dotted(path, name);
      if (recordPlaces) places.set(key, { file, line });
      result[name] = plain(pair.value as Node | null, key, recordPlaces);
    }
    return result;
  }

  const values = plain(document.contents as Node | null, '', true) ?? {};
  if (!isRecord(values)) throw new InputError('expected a map of keys to values', { file, line: 1 });
  return { values, places };
}

/** `a.b=c` as the layer `{ a: { b: c } }`, with `c` read as YAML. */
export function readAssignment(assignment: string): Source {
  const place: Where = { file: `--set ${assignment}` };
  const equals = assignment.indexOf('=');
  const path = assignment.slice(0, Math.max(equals, 0)).trim().split('.');
  if (path.some((name) => name === '' || name === '__proto__')) {
    throw new InputError('expected key=value, with the key as in the file and dots between its parts', place);
  }
  let values = assignedValue(assignment.slice(equals + 1), place);
  for (const name of path.toReversed()) values = { [name]: values };
  const places = new Map(path.map((_, i) => [path.slice(0, i + 1).join('.'), place]));
  return { values: values as Record<string, unknown>, places };
}

function assignedValue(text: string, place: Where): unknown {
  try {
    // Wrapped in a map, so that the rules for values in a file apply here as well.
    const { values } = parseSource(`value: ${text}`, '');
    if (Object.keys(values).length === 1) return values.value;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
  }
  throw new InputError('the value is not valid YAML', place);
}

function shown(path: string): string {
  const near = relative(process.cwd(), path);
  return near.startsWith('..') ? path : near;
}

/** A dotted key at which two configurations differ; `undefined` if one of them does not have it. */
export interface Difference {
  readonly key: string;
  readonly a: unknown;
  readonly b: unknown;
}

/** The keys at which two configurations differ, down to single values; a list is compared as a whole. */
export function differences(a: unknown, b: unknown, path = ''): Difference[] {
  if (isRecord(a) && isRecord(b)) {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
    return keys.flatMap((key) => differences(a[key], b[key], dotted(path, key)));
  }
  return isDeepStrictEqual(a, b) ? [] : [{ key: path, a, b }];
}

/** The configuration as YAML with all defaults filled in, as stored in a run folder. */
export function resolvedYaml(config: unknown): string {
  return stringify(config, { lineWidth: 0 });
}
