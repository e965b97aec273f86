import { InputError } from '../../errors.js';

/** Chinese word segmentation with Jieba's dictionary and its hidden Markov model for unknown words. */
export async function jiebaSegmenter(): Promise<(text: string) => string[]> {
  const { Jieba, dict } = await load();
  const jieba = Jieba.withDict(dict);
  return (text) => jieba.cut(text, true).filter((word) => word.trim() !== '');
}

async function load() {
  try {
    const [{ Jieba }, { dict }] = await Promise.all([import('@node-rs/jieba'), import('@node-rs/jieba/dict.js')]);
    return { Jieba, dict };
  } catch {
    throw new InputError('segmenting Chinese needs the optional package @node-rs/jieba: npm install @node-rs/jieba@2');
  }
}
