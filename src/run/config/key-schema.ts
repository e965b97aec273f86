import { stringify } from 'yaml';
import { z } from 'zod';

/**
 * What a configuration may contain at one place: the part of JSON Schema (2020-12) that zod writes for the types a
 * configuration is made of. Everything the user reads about a key (its type in words, its default, its
 * description, the keys next to it) comes from this tree, so it cannot disagree with what is accepted.
 */
export interface KeySchema {
  type?: 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean' | 'null';
  description?: string;
  default?: unknown;
  examples?: unknown[];
  properties?: Record<string, KeySchema>;
  required?: string[];
  additionalProperties?: boolean | KeySchema;
  items?: boolean | KeySchema;
  prefixItems?: KeySchema[];
  minItems?: number;
  maxItems?: number;
  enum?: unknown[];
  const?: unknown;
  anyOf?: KeySchema[];
  oneOf?: KeySchema[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  /** `file`: a string that begins with `./` or `../` is a path relative to the file that contains it. */
  relativeTo?: 'file';
  /** A string that may be used instead of a map. */
  shorthand?: string;
}

/** Rejects a schema with an object that would accept unknown keys: that is a mistake in the program. */
export function keySchema(schema: z.ZodType): KeySchema {
  const tree = z.toJSONSchema(schema, { io: 'input' }) as KeySchema;
  requireStrict(tree, '');
  return tree;
}

function requireStrict(schema: KeySchema, path: string): void {
  // With `additionalProperties` as a schema, other keys are allowed: those of a module.
  if (
    schema.properties !== undefined &&
    schema.additionalProperties !== false &&
    !isRecord(schema.additionalProperties)
  ) {
    throw new TypeError(`the schema's object ${path || 'at the top'} must be a z.strictObject`);
  }
  for (const [key, inner] of Object.entries(schema.properties ?? {})) requireStrict(inner, dotted(path, key));
  for (const inner of alternatives(schema)) if (inner !== schema) requireStrict(inner, path);
  for (const inner of [schema.items, schema.additionalProperties]) {
    if (typeof inner === 'object') requireStrict(inner, dotted(path, '*'));
  }
}

/** The members of a union, or the schema itself. */
function alternatives(schema: KeySchema): KeySchema[] {
  return schema.oneOf ?? schema.anyOf ?? [schema];
}

/** The key that distinguishes the members of a union of objects: each has its own constant there. */
export function discriminator(schema: KeySchema): string | undefined {
  const members = alternatives(schema);
  if (members.length < 2) return undefined;
  return Object.keys(members[0].properties ?? {}).find((key) =>
    members.every((member) => constants(member.properties?.[key]) !== undefined),
  );
}

/** The members of a union of objects that `value` names by its discriminator; all of them where it names none. */
export function membersFor(schema: KeySchema, value: unknown): KeySchema[] {
  const members = alternatives(schema);
  const key = discriminator(schema);
  if (key === undefined || !isRecord(value)) return members;
  const named = members.filter((member) => constants(member.properties?.[key])?.includes(value[key]));
  return named.length > 0 ? named : members;
}

/** The schema of the key at `path` inside `value`. */
export function schemaAt(schema: KeySchema, path: readonly PropertyKey[], value: unknown): KeySchema | undefined {
  if (path.length === 0) return schema;
  const [head, ...rest] = path;
  const below = isRecord(value) || Array.isArray(value) ? (value as Record<PropertyKey, unknown>)[head] : undefined;
  const members = membersFor(schema, value);
  const inner = members.map((member) => child(member, head)).filter((found) => found !== undefined);
  if (inner.length === 0) return undefined;
  // A discriminator that names no member: any of their constants will do.
  if (inner.length > 1 && inner.every((found) => constants(found) !== undefined)) {
    return schemaAt({ enum: inner.flatMap((found) => constants(found)!) }, rest, below);
  }
  return schemaAt(inner[0], rest, below);
}

function child(schema: KeySchema, key: PropertyKey): KeySchema | undefined {
  if (typeof key === 'number') {
    return schema.prefixItems?.[key] ?? (typeof schema.items === 'object' ? schema.items : undefined);
  }
  const named = schema.properties?.[String(key)];
  return named ?? (typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined);
}

function constants(schema: KeySchema | undefined): unknown[] | undefined {
  return schema?.const !== undefined ? [schema.const] : schema?.enum;
}

/** Every dotted key of a configuration, of all members of unions, in the order of the schema. */
export function knownKeys(schema: KeySchema, path = ''): string[] {
  const keys = alternatives(schema).flatMap((member) =>
    Object.entries(member.properties ?? {}).flatMap(([key, inner]) => {
      const full = dotted(path, key);
      return [full, ...knownKeys(inner, full)];
    }),
  );
  return [...new Set(keys)];
}

/** What is accepted, in words that follow "expected": `an integer of at least 1`, `"min" or "max"`. */
export function inWords(schema: KeySchema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return either(schema.enum.map((value) => JSON.stringify(value)));
  const members = alternatives(schema);
  if (members.length > 1) {
    const key = discriminator(schema);
    if (key === undefined) return either(members.map(inWords));
    const names = members.flatMap((member) => constants(member.properties?.[key])!);
    return `a map with ${key}: ${either(names.map((name) => JSON.stringify(name)))}`;
  }
  switch (schema.type) {
    case 'integer':
    case 'number':
      return `${schema.type === 'integer' ? 'an integer' : 'a number'}${bounds(schema)}`;
    case 'boolean':
      return 'true or false';
    case 'string':
      return `${schema.minLength === undefined ? 'text' : `text of at least ${count(schema.minLength, 'character')}`}${
        schema.pattern === undefined ? '' : ` that matches ${schema.pattern}`
      }`;
    case 'null':
      return 'null';
    case 'array':
      return list(schema);
    case 'object':
      if (typeof schema.additionalProperties !== 'object') return 'a map';
      return `a map in which each value is ${inWords(schema.additionalProperties)}`;
    default:
      return 'any value';
  }
}

function bounds(schema: KeySchema): string {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  const parts: string[] = [];
  const low = minimum !== undefined && minimum !== Number.MIN_SAFE_INTEGER;
  const high = maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER;
  if (low && high) parts.push(`from ${minimum} to ${maximum}`);
  else if (low) parts.push(`of at least ${minimum}`);
  if (exclusiveMinimum !== undefined) parts.push(`above ${exclusiveMinimum}`);
  if (exclusiveMaximum !== undefined) parts.push(`below ${exclusiveMaximum}`);
  if (high && !low) parts.push(`of at most ${maximum}`);
  if (multipleOf !== undefined) parts.push(`divisible by ${multipleOf}`);
  return parts.length === 0 ? '' : ` ${parts.join(' and ')}`;
}

function list(schema: KeySchema): string {
  if (schema.prefixItems !== undefined) return `a list of ${schema.prefixItems.map(inWords).join(', ')}`;
  const item = typeof schema.items === 'object' ? ` in which each item is ${inWords(schema.items)}` : '';
  const { minItems, maxItems } = schema;
  if (minItems !== undefined && minItems === maxItems) return `a list of ${count(minItems, 'item')}${item}`;
  const size = [
    minItems === undefined ? '' : ` of at least ${count(minItems, 'item')}`,
    maxItems === undefined ? '' : ` of at most ${count(maxItems, 'item')}`,
  ];
  return `a list${size.filter(Boolean).join(' and')}${item}`;
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}

function either(choices: string[]): string {
  if (choices.length < 2) return choices.join('');
  return `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`;
}

export function dotted(path: string, key: PropertyKey): string {
  return path === '' ? String(key) : `${path}.${String(key)}`;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * A commented file with every key of a configuration: its description (`.describe`), what it accepts, its default. The
 * file is itself a valid configuration, with every key at its default, if each key without one has `.meta({ examples })`;
 * keys that are optional or without an example, and the other members of unions, are written as comments.
 */
export function referenceYaml(schema: z.ZodType, title = ''): string {
  const head = title === '' ? [] : [...comment(title), ''];
  return `${[...head, ...mapLines(keySchema(schema), undefined)].join('\n').trimEnd()}\n`;
}

/** JSON Schema for editors, with `extends` added; nothing is required, as it may come from an extended file. */
export function jsonSchema(schema: z.ZodType): Record<string, unknown> {
  const tree = withShorthands(withoutRequired(keySchema(schema)));
  const extend: KeySchema = { type: 'string', description: EXTENDS };
  return { ...tree, properties: { extends: extend, ...tree.properties } };
}

const EXTENDS = 'Path, relative to this file, of a configuration that this one is laid over.';

function withoutRequired(schema: KeySchema): KeySchema {
  const { required: _, properties, ...rest } = schema;
  if (properties === undefined) return schema;
  const inner = Object.entries(properties).map(([key, value]) => [key, withoutRequired(value)]);
  return { ...rest, properties: Object.fromEntries(inner) };
}

/** Strings that may be used instead of a map, in JSON Schema terms for editors. */
function withShorthands({ shorthand, ...schema }: KeySchema): KeySchema {
  const properties = Object.entries(schema.properties ?? {}).map(([key, inner]) => [key, withShorthands(inner)]);
  const plain: KeySchema = {
    ...schema,
    ...(schema.properties && { properties: Object.fromEntries(properties) }),
    ...(schema.oneOf && { oneOf: schema.oneOf.map(withShorthands) }),
    ...(schema.anyOf && { anyOf: schema.anyOf.map(withShorthands) }),
  };
  return shorthand === undefined ? plain : { description: schema.description, anyOf: [{ const: shorthand }, plain] };
}

/** The keys of a map, each with its comment; `defaults` are those the map as a whole gives to its keys. */
function mapLines(schema: KeySchema, defaults: unknown): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, inner]) => {
    const given = isRecord(defaults) ? defaults[key] : undefined;
    const lines = keyLines(key, inner, given ?? inner.default, schema.required?.includes(key) ?? false);
    return lines.at(-1) === '' ? lines : [...lines, ''];
  });
}

function keyLines(key: string, schema: KeySchema, value: unknown, required: boolean): string[] {
  const described = schema.description === undefined ? [] : comment(schema.description);
  // A map with an example exists only if it is given.
  if (schema.properties !== undefined && schema.examples === undefined) {
    const lines = [`${key}:`, ...indent(mapLines(schema, value))];
    // An optional map with required keys has no default.
    const isLeftOut = !required && value === undefined && (schema.required?.length ?? 0) > 0;
    return [...described, ...(isLeftOut ? commentedOut(lines) : lines)];
  }
  if (discriminator(schema) !== undefined) return [...described, ...unionLines(key, schema, value)];
  if (schema.const !== undefined && required) return [...described, `${key}: ${JSON.stringify(schema.const)}`];

  const example = schema.examples?.[0];
  const fallback = required ? 'required' : 'optional';
  const note = value === undefined ? fallback : `default ${JSON.stringify(value)}`;
  const lines = [...described, ...comment(`${capital(inWords(schema))}; ${note}.`)];
  if (value !== undefined) return [...lines, ...assignment(key, value)];
  if (example === undefined) return [...lines, `# ${key}:`];
  return [...lines, ...(required ? assignment(key, example) : assignment(key, example).map((line) => `# ${line}`))];
}

/** The default member verbatim, the others as comments. */
function unionLines(key: string, schema: KeySchema, value: unknown): string[] {
  const members = alternatives(schema);
  const chosen = isRecord(value) ? membersFor(schema, value)[0] : members[0];
  return [chosen, ...members.filter((member) => member !== chosen)].flatMap((member, i) => {
    const described = member.description === undefined ? [] : comment(member.description);
    const lines = [...described, `${key}:`, ...indent(mapLines(member, i === 0 ? value : undefined))];
    return i === 0 ? trimmed(lines) : ['', ...comment('Or:'), ...commentedOut(lines)];
  });
}

function commentedOut(lines: readonly string[]): string[] {
  return trimmed(lines).map((line) => (line === '' ? '#' : `# ${line}`));
}

/** Without empty lines at the end. */
function trimmed(lines: readonly string[]): string[] {
  return lines.slice(0, lines.findLastIndex((line) => line !== '') + 1);
}

function assignment(key: string, value: unknown): string[] {
  const block = stringify({ [key]: value }, { lineWidth: 0, flowCollectionPadding: false, collectionStyle: 'flow' });
  // `{key: value}` in flow style, without the braces around it.
  return [block.trim().slice(1, -1)];
}

function comment(text: string): string[] {
  return text.split('\n').flatMap((paragraph) => wrap(paragraph, 100).map((line) => `# ${line}`.trimEnd()));
}

function wrap(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.length - 1;
    if (lines[last] !== '' && lines[last].length + 1 + word.length > width) lines.push(word);
    else lines[last] = lines[last] === '' ? word : `${lines[last]} ${word}`;
  }
  return lines;
}

function indent(lines: string[]): string[] {
  return lines.map((line) => (line === '' ? '' : `  ${line}`));
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
