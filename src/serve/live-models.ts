import { statSync } from 'node:fs';
import { join } from 'node:path';
import { InputError } from '../errors.js';
import { readingWithin } from '../regular-file.js';
import { checkpointFolder, generations } from '../run/index.js';
import type { Policy } from '../translate/decode/policy.js';
import type { StreamOptions } from '../translate/decode/stream.js';
import { type TextSide, TextStream } from '../translate/decode/text-stream.js';
import { Translator } from '../translate/decode/translator.js';
import type { CheckpointChoice } from '../translate/index.js';
import { GatheringModel } from './gathering-model.js';

/** A model that many sentences share. */
export interface LiveModel {
  readonly source: TextSide;
  readonly target: TextSide;
  /** Longest sentence in tokens, its end counted. */
  readonly maxPositions: number;
  /** The policy that a short text stands for, as `wait-k:3`. Default the one that the model was trained for. */
  policy(spec?: string): Policy;
  stream(policy: Policy, onEvent?: StreamOptions['onEvent']): TextStream;
  close(): Promise<void>;
}

export interface LiveModelOptions {
  /** Hypotheses once the source has ended. Default 1: every word is written as soon as it is found. */
  readonly beam?: number;
  /** What an end of the sentence means that is proposed before the source has ended. Default `allow`. */
  readonly earlyEnd?: 'allow' | 'block';
  /** Threads inside one operation. Default 1. */
  readonly threads?: number;
  /** Default `best`. */
  readonly checkpoint?: CheckpointChoice;
}

export async function openLiveModel(run: string, options: LiveModelOptions = {}): Promise<LiveModel> {
  const { beam = 1, earlyEnd, threads, checkpoint } = options;
  const translator = await Translator.open(run, { beam, threads, checkpoint });
  const { source, target } = translator;
  const models = translator.models.map((model) => new GatheringModel(model));
  return {
    source,
    target,
    maxPositions: Math.min(...models.map((model) => model.maxPositions)),
    policy: (spec) => translator.policy(spec),
    stream: (policy, onEvent) => new TextStream(models, source, target, policy, { beam, earlyEnd, onEvent }),
    close: () => translator.close(),
  };
}

/** A model for as long as somebody needs it. */
export interface Lease {
  readonly model: LiveModel;
  release(): void;
}

interface Entry {
  readonly opening: Promise<LiveModel>;
  /** Tells its parameters from those that training may write later. */
  readonly stamp: string;
  users: number;
}

/** The models that are open: at most `most`, each shared by all who use it, the longest unused closed first. */
export class LiveModels {
  /** In the order of their last use. */
  private readonly entries = new Map<string, Entry>();

  constructor(
    private readonly most: number,
    private readonly options: LiveModelOptions = {},
  ) {}

  /** Sentences that hold a model. */
  get users(): number {
    return [...this.entries.values()].reduce((sum, { users }) => sum + users, 0);
  }

  async lease(run: string): Promise<Lease> {
    const entry = this.entries.get(run) ?? this.open(run);
    const current = entry.users > 0 || entry.stamp === this.stamp(run) ? entry : this.reopen(run, entry);
    this.entries.delete(run);
    this.entries.set(run, current);
    current.users++;
    try {
      const model = await current.opening;
      let held = true;
      const release = (): void => {
        if (held) current.users--;
        held = false;
      };
      return { model, release };
    } catch (error) {
      current.users--;
      if (this.entries.get(run) === current) this.entries.delete(run);
      throw error;
    }
  }

  async close(): Promise<void> {
    const all = [...this.entries.values()];
    this.entries.clear();
    await Promise.all(all.map(closeEntry));
  }

  private open(run: string): Entry {
    if (this.entries.size >= this.most) {
      const idle = [...this.entries].find(([, { users }]) => users === 0);
      if (idle === undefined) throw new InputError(`${this.most} models are in use, which is as many as are kept open`);
      this.entries.delete(idle[0]);
      void closeEntry(idle[1]);
    }
    // The stamp first: of parameters that are written meanwhile, it is one that no longer fits.
    const stamp = this.stamp(run);
    return { opening: readingWithin(run, () => openLiveModel(run, this.options)), stamp, users: 0 };
  }

  /** Training has saved other parameters since. */
  private reopen(run: string, old: Entry): Entry {
    this.entries.delete(run);
    void closeEntry(old);
    return this.open(run);
  }

  /** Name and time of the newest checkpoint among those that `checkpoint` chooses from. */
  private stamp(run: string): string {
    const folder = checkpointFolder(run);
    const { checkpoint = 'best' } = this.options;
    const newest = generations(folder).map(({ path }) => path)[0];
    const paths = [checkpoint === 'best' ? join(folder, 'best.safetensors') : undefined, newest];
    for (const path of paths) {
      const written = path && statSync(path, { throwIfNoEntry: false })?.mtimeMs;
      if (written !== undefined) return `${path} ${written}`;
    }
    return 'none';
  }
}

async function closeEntry({ opening }: Entry): Promise<void> {
  const model = await opening.catch(() => undefined);
  await model?.close();
}
