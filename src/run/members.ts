import { existsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { readJsonFile } from '../files.js';

const range = z.tuple([z.string(), z.string()]).readonly();

const memberSchema = z.object({
  /** Of its folder in `members/`. */
  name: z.string().regex(/^\w[\w.=,+-]*$/),
  seed: z.number(),
  /** First and last day of each part, where members differ in them. */
  window: z.object({ train: range, validation: range, test: range }).optional(),
});

const fileSchema = z.object({ members: z.array(memberSchema).min(1) });

/** One of the runs that a run consists of: a run folder in `members/` of the folder of the whole. */
export type Member = Readonly<z.output<typeof memberSchema>>;

/** The members of a run, in order of their windows and then seeds; undefined for a run that was trained by itself. */
export function readMembers(run: string): readonly Member[] | undefined {
  const file = join(run, MEMBERS_FILE);
  return existsSync(file) ? readJsonFile(file, fileSchema).members : undefined;
}

/** The list of members as JSON. */
export function membersJson(members: readonly Member[]): string {
  const plain = members.map(({ name, seed, window }) => ({ name, seed, window }));
  return `${JSON.stringify({ members: plain }, null, 1)}\n`;
}

/** The run folder of a member. */
export function memberFolder(run: string, name: string): string {
  return join(run, FOLDER, name);
}

/** The run that a run is a member of; the run itself where it is none. */
export function wholeRun(run: string): string {
  const folder = dirname(resolve(run));
  const whole = dirname(folder);
  return basename(folder) === FOLDER && existsSync(join(whole, MEMBERS_FILE)) ? whole : run;
}

const FOLDER = 'members';

/** What a run that consists of others keeps of them, in its folder. */
export const MEMBERS_FILE = 'members.json';
