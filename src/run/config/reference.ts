import { stringify } from 'yaml';
import type { z } from 'zod';
import { alternatives, discriminator, inWords, isRecord, type KeySchema, keySchema, membersFor } from './key-schema.js';

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

/** Texts that may stand in the place of a map, in words that editors know. */
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
  if (schema.properties !== undefined) return [...described, `${key}:`, ...indent(mapLines(schema, value))];
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

/** The member that is the default as it stands, the others as comments. */
function unionLines(key: string, schema: KeySchema, value: unknown): string[] {
  const members = alternatives(schema);
  const chosen = isRecord(value) ? membersFor(schema, value)[0] : members[0];
  return [chosen, ...members.filter((member) => member !== chosen)].flatMap((member, i) => {
    const described = member.description === undefined ? [] : comment(member.description);
    const lines = [...described, `${key}:`, ...indent(mapLines(member, i === 0 ? value : undefined))];
    while (lines.at(-1) === '') lines.pop();
    return i === 0 ? lines : ['', ...comment('Or:'), ...lines.map((line) => (line === '' ? '#' : `# ${line}`))];
  });
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
