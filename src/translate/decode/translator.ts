import { InputError } from '../../errors.js';
import { createPolicy, ownPolicy, parsePolicies, type Training } from '../policies/index.js';
import type { Language, Languages } from '../text/languages.js';
import { textPipeline } from '../text/pipeline.js';
import { special } from '../text/vocabulary.js';
import { type BatchOptions, tooLong, translateBatch } from './batch.js';
import { IncrementalModel } from './incremental-model.js';
import { interpretBatch } from './interpret-batch.js';
import { type OpenedModel, type OpenOptions, openModel } from './open-model.js';
import type { Policy } from './policy.js';
import type { Decoded } from './sentence.js';
import { StepModel } from './step-model.js';
import { lineIds, type TextSide, TextStream, type TextStreamOptions } from './text-stream.js';
import type { TokenModel } from './token-model.js';

export type TranslatorOptions = OpenOptions;

export interface LineOptions extends BatchOptions {
  /**
   * Told of a line, from 0, that is too long for the models, and why; its translation is empty. Default: such a line is
   * refused, and with it all others.
   */
  readonly onTooLong?: (line: number, reason: InputError) => void;
}

/** The models of one or more runs together with their languages: text in, text out, under any policy. */
export class Translator {
  /** What policies run over, in the order of the runs. */
  readonly models: readonly TokenModel[];

  private constructor(
    private readonly opened: readonly OpenedModel[],
    readonly source: TextSide,
    readonly target: TextSide,
  ) {
    this.models = opened.map(({ steps }) => new IncrementalModel(steps));
  }

  /** @param more runs with the same vocabularies, for policies that choose among several models */
  static async open(run: string, options: TranslatorOptions = {}, more: readonly string[] = []): Promise<Translator> {
    const opened: OpenedModel[] = [];
    try {
      for (const folder of [run, ...more]) {
        opened.push(await openModel(folder, options));
        requireSame(opened[0].languages, opened.at(-1)!.languages, folder);
      }
      const { source, target } = opened[0].languages;
      return new Translator(opened, await textSide(source), await textSide(target));
    } catch (error) {
      await closeAll(opened);
      throw error;
    }
  }

  /** What the models were trained to translate with. */
  get training(): readonly Training[] {
    return this.opened.map(({ training }) => training);
  }

  /** Updates that the parameters of the first model have had. */
  get step(): number {
    return this.opened[0].step;
  }

  /** The policies that a text stands for (see `parsePolicies`). Default the one that the first model was trained for. */
  policies(text?: string): Policy[] {
    if (text === undefined) return [ownPolicy(this.training)];
    return parsePolicies(text).map((spec) => createPolicy(spec, this.training));
  }

  /** As `policies`, for a text that stands for one. */
  policy(text?: string): Policy {
    if (text === undefined) return ownPolicy(this.training);
    const [spec, ...others] = parsePolicies(text);
    if (others.length === 0) return createPolicy(spec, this.training);
    throw new InputError(`expected one policy, found ${others.length + 1} in ${text}`, { key: 'policy' });
  }

  /** One sentence, word by word. */
  stream(policy: Policy, options?: TextStreamOptions): TextStream {
    return new TextStream(this.models, this.source, this.target, policy, options);
  }

  /** Sentences of token ids that end with `</s>`, as if each were read token by token. */
  translate(sources: readonly ArrayLike<number>[], policy: Policy, options?: BatchOptions): Promise<Decoded[]> {
    const [{ steps }] = this.opened;
    // Where all is known in advance, sentences can march in step.
    if (policy.look === undefined && steps instanceof StepModel) return translateBatch(steps, sources, policy, options);
    return interpretBatch(this.models, sources, policy, options);
  }

  /** Whole lines, as if each were read token by token. */
  async lines(
    lines: readonly string[],
    policy: Policy,
    { onTooLong, ...options }: LineOptions = {},
  ): Promise<string[]> {
    const most = Math.min(...this.models.map(({ maxPositions }) => maxPositions));
    const sources = lines.map((line, i) => {
      const ids = lineIds(this.source, line);
      if (ids.length <= most || onTooLong === undefined) return ids;
      onTooLong(i, tooLong(ids.length, most));
      return Int32Array.of(special.eos);
    });
    return (await this.translate(sources, policy, options)).map((decoded) => this.text(decoded));
  }

  /** The line of text that a translation stands for. */
  text({ tokens }: Pick<Decoded, 'tokens'>): string {
    return this.target.pipeline.decode(this.target.vocabulary.decode(tokens));
  }

  close(): Promise<void> {
    return closeAll(this.opened);
  }
}

async function textSide(language: Language): Promise<TextSide> {
  return { pipeline: await textPipeline(language.config, language), vocabulary: language.vocabulary };
}

function requireSame(expected: Languages, found: Languages, folder: string): void {
  for (const side of ['source', 'target'] as const) {
    if (expected[side].vocabulary.format() === found[side].vocabulary.format()) continue;
    throw new InputError(`its ${side} vocabulary is not that of the first run`, { file: folder });
  }
}

async function closeAll(opened: readonly OpenedModel[]): Promise<void> {
  for (const { steps } of opened) await steps.close();
}
