import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { trainConfigSchema } from '../../src/problems/index.js';
import { loadGrid, type Plan, type PlanOptions, planSweep } from '../../src/sweep/index.js';
import { temporaryFolder } from '../run/temporary.js';

/** A training configuration that trains in a second. */
const BASE = `problem: {kind: known-answer}
strategy: {name: fixed}
training: {episodes: 3, steps: 2}
threads: 1
logging: {tensorboard: false}
`;

/** A translation: in these tests nobody trains it. */
const TRANSLATION = `problem: {kind: translation, data: {from: toy}}
strategy: {name: fixed}
training: {episodes: 1, steps: 1}
threads: 1
`;

/** Writes a grid and its bases (`base.yaml`, `translation.yaml`) to their own folder and returns its path. */
export function gridFile(text: string): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'base.yaml'), BASE);
  writeFileSync(join(folder, 'translation.yaml'), TRANSLATION);
  const file = join(folder, 'grid.yaml');
  writeFileSync(file, text);
  return file;
}

/** The plan of a grid; its runs go to a folder beside it. */
export function planFor(text: string, options: Partial<PlanOptions> = {}): Plan {
  const file = gridFile(text);
  return planSweep(loadGrid(file), { schema: trainConfigSchema, out: join(file, '..', 'runs'), ...options });
}
