import type { z } from 'zod';
import { InputError } from './errors.js';
import { readText } from './files.js';

/** The content of a JSON file that must fit a schema; an error names the file and the key. */
export function readJsonFile<S extends z.ZodType>(file: string, schema: S): z.output<S> {
  let content: unknown;
  try {
    content = JSON.parse(readText(file));
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(`not JSON: ${(error as Error).message}`, { file });
  }
  return fitting(content, schema, file);
}

/** What was read from a JSON file, if it fits a schema; an error names the file and the key. */
export function fitting<S extends z.ZodType>(content: unknown, schema: S, file: string): z.output<S> {
  const parsed = schema.safeParse(content);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new InputError(issue.message, { file, key: issue.path.join('.') });
}
