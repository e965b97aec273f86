import type { Language } from '../text/languages.js';
import { textPipeline } from '../text/pipeline.js';
import { openTrained, type TrainedTranslation } from '../trained.js';
import { type BatchOptions, translateBatch } from './batch.js';
import type { Policy } from './policy.js';
import type { Decoded } from './sentence.js';
import { StepModel, type StepModelOptions } from './step-model.js';
import type { StreamOptions } from './stream.js';
import { lineIds, type TextSide, TextStream } from './text-stream.js';

export interface TranslatorOptions extends StepModelOptions {
  /** The parameters that were best on the main task, or the latest. Default `best`. */
  readonly checkpoint?: 'best' | 'latest';
}

/** A run's model together with its languages: text in, text out. */
export class Translator {
  private constructor(
    readonly trained: TrainedTranslation,
    readonly model: StepModel,
    readonly source: TextSide,
    readonly target: TextSide,
  ) {}

  static async open(run: string, { checkpoint, ...options }: TranslatorOptions = {}): Promise<Translator> {
    const trained = openTrained(run, checkpoint);
    const { source, target } = trained.languages;
    const sides = { source: await textSide(source), target: await textSide(target) };
    const model = await StepModel.create(trained.model, trained.arena, {
      redecodes: trained.waits === 'full',
      ...options,
    });
    return new Translator(trained, model, sides.source, sides.target);
  }

  /** One sentence, word by word. */
  stream(policy: Policy, options?: StreamOptions): TextStream {
    return new TextStream(this.model, this.source, this.target, policy, options);
  }

  /** Whole lines, as if each were read token by token. */
  async lines(lines: readonly string[], policy: Policy, options?: BatchOptions): Promise<string[]> {
    const sources = lines.map((line) => lineIds(this.source, line));
    return (await translateBatch(this.model, sources, policy, options)).map((decoded) => this.text(decoded));
  }

  /** The line of text that a translation stands for. */
  text({ tokens }: Pick<Decoded, 'tokens'>): string {
    return this.target.pipeline.decode(this.target.vocabulary.decode(tokens));
  }

  close(): Promise<void> {
    return this.model.close();
  }
}

async function textSide(language: Language): Promise<TextSide> {
  return { pipeline: await textPipeline(language.config, language), vocabulary: language.vocabulary };
}
