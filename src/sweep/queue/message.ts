import { createHash } from 'node:crypto';
import { isAbsolute, join, relative, sep } from 'node:path';
import { z } from 'zod';
import { InputError } from '../../errors.js';
import { compatible, toolVersion } from '../../run/versions.js';
import type { Job } from '../job.js';

const schema = z.strictObject({
  /** Version of the tool that asks for the run. */
  version: z.string(),
  /** Which shared folder it belongs in, see `SharedFolder.id`. */
  shared: z.string(),
  /** The run folder, relative to the shared one, with / between its parts. */
  folder: z.string().min(1),
  config: z.string(),
  after: z.array(z.array(z.string()).min(1)),
  cores: z.int().min(1),
  /** Updates after which it pauses. */
  until: z.int().min(1).optional(),
  /** The sweep wants it to save itself and stop. */
  stop: z.boolean(),
});

/** A job as it lies in the queue: it means the same on every machine, as it names nothing outside the shared folder. */
export type Message = z.output<typeof schema>;

/** A job whose folder lies in the shared folder `runs`, as a message. */
export function messageOf(job: Job, runs: string, shared: string): Message {
  const folder = relative(runs, job.folder);
  if (!isInside(folder)) throw new InputError(`the run is not in the shared folder ${runs}`, { file: job.folder });
  const after = job.after.map((verb) => [...verb]);
  const { config, cores, until } = job;
  const place = { version: toolVersion, shared, folder: folder.split(sep).join('/') };
  return { ...place, config, after, cores, ...(until !== undefined && { until }), stop: false };
}

/** The message as a job on this machine, where the shared folder is `runs`. */
export function jobOf({ folder, config, after, cores, until }: Message, runs: string): Job {
  const place = { name: folder.split('/').at(-1)!, folder: join(runs, ...folder.split('/')) };
  return { ...place, config, after, cores, ...(until !== undefined && { until }) };
}

/**
 * Of one run there is one identity, as long as what is asked of it is the same: asking twice does not run it twice.
 * Readable in front; BullMQ allows no colon and no bare number, and a file is named after it.
 */
export function identityOf({ folder, config, after, until }: Message): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([folder, config, after, ...(until === undefined ? [] : [until])]))
    .digest('hex')
    .slice(0, 16);
  return `${folder.replaceAll(/[^\w.=,+-]/g, '-').slice(-READABLE)}-${hash}`;
}

/** Refuses to serve a sweep of another version of the tool, whose runs would not go on in this one. */
export function requireSameVersion(data: unknown): void {
  const { version } = (data ?? {}) as { version?: unknown };
  if (typeof version !== 'string' || compatible(version, toolVersion)) return;
  throw new InputError(
    `the sweep in this queue is one of tcts ${version}, and this worker is tcts ${toolVersion}: install the same version`,
  );
}

/** What was found in the queue, if it is a message that names a folder inside the shared one. */
export function parseMessage(data: unknown): Message | undefined {
  const { data: message } = schema.safeParse(data);
  return message !== undefined && isInside(message.folder) ? message : undefined;
}

function isInside(folder: string): boolean {
  return folder !== '' && !isAbsolute(folder) && !folder.split(/[/\\]/).includes('..');
}

const READABLE = 150;

/** Name of the queue where none is given. */
export const QUEUE_NAME = 'runs';

/** What all keys in Redis begin with. */
export const PREFIX = 'tcts';

/** The reason for which a job fails that its sweep has asked to stop. */
export const STOPPED = 'stopped by its sweep';
