import { z } from 'zod';
import { limits } from './limits.js';

const lane = z.string().regex(/^[a-z0-9-]{1,16}$/);
const policy = z.string().min(1).max(200);

const clientMessage = z.discriminatedUnion('type', [
  /** A new sentence in a lane; one that is under way there is dropped. */
  z.strictObject({ type: z.literal('begin'), lane, run: z.string().min(1).max(500), policy }),
  z.strictObject({ type: z.literal('word'), lane, word: z.string().regex(/^\S+$/u).max(limits.wordLength) }),
  /** The sentence is complete. */
  z.strictObject({ type: z.literal('end'), lane }),
  /** Go on with another policy. */
  z.strictObject({ type: z.literal('policy'), lane, policy }),
  z.strictObject({ type: z.literal('stop'), lane }),
]);

/** What the page says to the server. */
export type ClientMessage = z.output<typeof clientMessage>;

/** What the server says to the page. */
export type ServerMessage =
  /** The model is open, and words can come. */
  | { readonly type: 'begun'; readonly lane: string }
  | ({ readonly type: 'event'; readonly lane: string } & LiveEvent)
  /** Text of the translation that is settled, to be put behind what there is. */
  | { readonly type: 'text'; readonly lane: string; readonly text: string }
  /** The translation is complete. */
  | { readonly type: 'done'; readonly lane: string; readonly endedEarly: boolean }
  | { readonly type: 'error'; readonly lane?: string; readonly message: string };

/** A READ or a WRITE, and where the sentence stands after it. */
export interface LiveEvent {
  readonly action: 'READ' | 'WRITE';
  readonly token: string;
  /** Source tokens read, without the end of the sentence. */
  readonly read: number;
  /** Target tokens written. */
  readonly written: number;
  /** Average lagging and average proportion so far, in tokens; null before the first WRITE. */
  readonly AL: number | null;
  readonly AP: number | null;
}

/** The message in a text, or what is wrong with it. */
export function parseMessage(text: string): ClientMessage | { readonly type: 'wrong'; readonly reason: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { type: 'wrong', reason: 'expected a message in JSON' };
  }
  const parsed = clientMessage.safeParse(value);
  if (parsed.success) return parsed.data;
  const [{ path, message }] = parsed.error.issues;
  return { type: 'wrong', reason: `${path.length > 0 ? `${path.join('.')}: ` : ''}${message}` };
}

/**
 * A sentence for clients: paths within the folder of a run are shown from there on, and of other absolute paths only
 * the last part, for how the disk of the server is laid out is nobody else's business.
 */
export function withoutPaths(sentence: string, folder?: string): string {
  const own =
    folder === undefined ? sentence : sentence.replaceAll(`${folder}/`, '').replaceAll(folder, basenameOf(folder));
  return own.replaceAll(/(?<![\w.~/])(?:[A-Za-z]:)?[\\/](?:[^\s:'"\\/]+[\\/])+([^\s:'"\\/]*)/g, '$1');
}

function basenameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
