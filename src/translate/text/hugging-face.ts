import { Tokenizer } from '@huggingface/tokenizers';
import { InputError } from '../../errors.js';
import { Vocabulary } from './vocabulary.js';

/** A tokenizer that was trained elsewhere and stored as `tokenizer.json`. */
export interface HuggingFaceTokenizer {
  tokenize(text: string): string[];
  join(tokens: readonly string[]): string;
  /**
   * Its tokens in the order of its ids. Its own special tokens are replaced by ours; tokens with a line break cannot
   * occur in a line and are left out.
   */
  readonly vocabulary: Vocabulary;
}

export function huggingFaceTokenizer(json: string, file = 'tokenizer.json'): HuggingFaceTokenizer {
  const tokenizer = load(json, file);
  const specialTokens = new Set<string>();
  for (const token of tokenizer.get_added_tokens_decoder().values())
    if (token.special) specialTokens.add(token.content);
  const entries = [...tokenizer.get_vocab(true)]
    .filter(([token]) => token !== '' && !specialTokens.has(token) && !/[\n\r]/.test(token) && !ownSpecial.has(token))
    .sort(([, a], [, b]) => a - b)
    .map(([token]): [string, number] => [token, 0]);
  return {
    tokenize: (text) => tokenizer.tokenize(text, { add_special_tokens: false }),
    join: (tokens) => {
      const ids = tokens.flatMap((token) => tokenizer.token_to_id(token) ?? []);
      return ids.length === 0 ? '' : tokenizer.decode(ids, { skip_special_tokens: true });
    },
    vocabulary: new Vocabulary(entries),
  };
}

const ownSpecial = new Set(['<s>', '<pad>', '</s>', '<unk>']);

function load(json: string, file: string): Tokenizer {
  let content: unknown;
  try {
    content = JSON.parse(json);
  } catch (error) {
    throw new InputError(`not JSON: ${(error as Error).message}`, { file });
  }
  const model = (content as { model?: { type?: unknown } } | null)?.model;
  if (typeof model !== 'object' || model === null) {
    throw new InputError('expected a Hugging Face tokenizer.json with a `model`', { file });
  }
  try {
    return new Tokenizer(content as object, {});
  } catch (error) {
    throw new InputError(`the tokenizer cannot be used: ${(error as Error).message}`, { file });
  }
}
