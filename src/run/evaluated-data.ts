import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';
import { z } from 'zod';

/** The data that the figures of an evaluation are of, as `scores.json` has it under `data`. */
export const evaluatedDataSchema = z.object({
  /** As the configuration or `--data` names it. */
  name: z.string(),
  /** Tells data apart, wherever they lie: figures are compared only where it is the same. */
  digest: z.string(),
  /** Whether they are the data of the run's own configuration. */
  own: z.boolean(),
});

export type EvaluatedData = z.output<typeof evaluatedDataSchema>;

/** Where an evaluation is kept: data of others never take the place of the run's own. */
export function evaluationFolder(run: string, name: string, { name: data, digest, own }: EvaluatedData): string {
  const slug = basename(data)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 40);
  return join(run, 'evaluation', own ? name : `${name}-on-${slug}-${digest.slice(0, 8)}`);
}

/** The first 16 digits of the SHA-256 of all pieces, in their order. */
export function dataDigest(pieces: Iterable<string | Uint8Array>): string {
  const hash = createHash('sha256');
  for (const piece of pieces) {
    // With its length, so that moving a boundary makes other data.
    hash.update(`${piece.length} `).update(piece);
  }
  return hash.digest('hex').slice(0, 16);
}

/** What the `problem.data` of a configuration is called. */
export function dataName(data: unknown): string {
  const { folder, path, market, from, format, rows, seed } = z.looseObject({}).catch({}).parse(data);
  const found = [folder, path].find((name) => typeof name === 'string');
  if (found !== undefined) return typeof market === 'string' ? `${found}, ${market}` : String(found);
  if (from === 'toy') return `toy languages, seed ${String(seed ?? 1)}`;
  if (format === 'synthetic') return `synthetic ${rows === undefined ? 'market' : 'series'}, seed ${String(seed ?? 1)}`;
  return 'its own data';
}
