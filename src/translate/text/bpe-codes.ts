import { InputError } from '../../errors.js';

/** Merge operations of byte pair encoding in the order they were learned (Sennrich et al. 2016). */
export interface BpeCodes {
  /**
   * How the end of a word is written: 0.2 marks its last character (`n</w>`), 0.1, which files without a header
   * have, adds a symbol of its own (`n </w>`).
   */
  readonly version: '0.1' | '0.2';
  readonly merges: readonly (readonly [string, string])[];
}

export const endOfWord = '</w>';

/** Reads the file format of subword-nmt: a `#version` header, then two symbols a line. */
export function parseBpeCodes(text: string, file = 'BPE codes'): BpeCodes {
  const lines = text.replace(/\n+$/, '').split('\n');
  const header = /^#version:\s*(\S+)/.exec(lines[0]);
  if (header && header[1] !== '0.1' && header[1] !== '0.2') {
    throw new InputError(`BPE codes of version ${header[1]} are not known, expected 0.1 or 0.2`, { file, line: 1 });
  }
  const first = header ? 1 : 0;
  const merges = lines.slice(first).map((line, i): [string, string] => {
    const symbols = line.replace(/^[\r ]+|[\r ]+$/g, '').split(' ');
    if (symbols.length !== 2 || symbols.includes('')) {
      throw new InputError(`expected two subword units separated by a space, found ${JSON.stringify(line)}`, {
        file,
        line: first + i + 1,
      });
    }
    return [symbols[0], symbols[1]];
  });
  return { version: header?.[1] === '0.2' ? '0.2' : '0.1', merges };
}

export function formatBpeCodes(codes: BpeCodes): string {
  const header = codes.version === '0.2' ? '#version: 0.2\n' : '';
  return header + codes.merges.map(([left, right]) => `${left} ${right}\n`).join('');
}
