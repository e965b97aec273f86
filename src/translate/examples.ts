import { z } from 'zod';
import { isReadByCharacter, type PipelineConfig } from './text/pipeline.js';
import { toyLanguages, toyText, verbFinalLanguages, verbFinalText } from './toy.js';

export interface ExampleSentence {
  readonly source: string;
  /** If the language is synthetic. */
  readonly reference?: string;
}

/**
 * Example sentences in the source language of a model, if there are any. A model whose text came
 * tokenised gets them in that form, in lower case; one that reads by characters, without spaces.
 */
export function exampleSentences(source: PipelineConfig, problem: unknown): ExampleSentence[] {
  const { language, tokenizer } = source;
  const made = { [toyLanguages.source]: toyText, [verbFinalLanguages.source]: verbFinalText }[language];
  if (made !== undefined) {
    const seed = toySeed.parse(problem);
    if (seed === undefined) return [];
    const { test } = made(seed, { train: 0, valid: 0, test: EXAMPLES });
    return test.map(({ source, target }) => ({ source, reference: target }));
  }
  const sentences = SENTENCES[language] ?? [];
  return sentences.map((sentence) => {
    if (tokenizer.kind === 'none') return { source: tokenisedForm(sentence) };
    return { source: isReadByCharacter(source) ? sentence.replaceAll(' ', '') : sentence };
  });
}

const toySeed = z
  .looseObject({ data: z.looseObject({ seed: z.number() }) })
  .transform(({ data }) => data.seed)
  .optional()
  .catch(undefined);

function tokenisedForm(sentence: string): string {
  return sentence.toLowerCase().replaceAll(/([.,!?])/g, ' $1');
}

const SENTENCES: Readonly<Record<string, readonly string[]>> = {
  en: [
    'Two young girls are playing with a red ball on the green grass.',
    'A man in a blue shirt is standing on a ladder cleaning a window.',
    'The dog that jumped into the water is bringing back a long stick.',
    'A woman with a large hat is reading a book in front of the old church.',
  ],
  de: [
    'Zwei junge Mädchen spielen auf der grünen Wiese mit einem roten Ball.',
    'Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.',
    'Der Hund, der ins Wasser gesprungen ist, bringt einen langen Stock zurück.',
  ],
  fr: [
    'Deux jeunes filles jouent avec un ballon rouge sur la pelouse.',
    'Un homme en chemise bleue nettoie une fenêtre.',
  ],
  es: ['Dos niñas juegan con una pelota roja en el césped.', 'Un hombre con camisa azul limpia una ventana.'],
  vi: ['Hai cô gái trẻ đang chơi với một quả bóng đỏ trên bãi cỏ xanh.'],
  zh: ['两个 年轻 的 女孩 正在 草地 上 玩 一个 红色 的 球 。'],
};

/** Synthetic sentences. */
const EXAMPLES = 4;
