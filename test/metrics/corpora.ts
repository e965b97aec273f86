import { readSharedJson } from '../shared.js';

export interface Corpus {
  readonly id: string;
  readonly hyp: readonly string[];
  readonly refs: readonly (readonly string[])[];
}

let corpora: Map<string, Corpus> | undefined;

/** One of the corpora of the reference vectors. */
export function corpus(id: string): Corpus {
  corpora ??= new Map(readSharedJson<Corpus[]>('vectors/bleu/corpora.json').map((entry) => [entry.id, entry]));
  const found = corpora.get(id);
  if (found === undefined) throw new Error(`no corpus ${id} among the vectors`);
  return found;
}

/** The references of one segment. */
export function referencesOf({ refs }: Corpus, line: number): string[] {
  return refs.map((reference) => reference[line]);
}

/** sacreBLEU's signature with our own version tag instead of its version. */
export function ourSignature(signature: string): string {
  return signature.replace('version:2.6.0', 'version:2.6.0+tcts');
}
