export interface Filters {
  /** Most words on either side, before byte pair encoding. Default 175. */
  readonly maxLength: number;
  /** Most tokens on either side, after byte pair encoding. Default 1,024. */
  readonly maxTokens: number;
  /** Largest ratio between the numbers of words of the two sides. Default no limit. */
  readonly ratio?: number;
}

export const defaultFilters: Filters = { maxLength: 175, maxTokens: 1024 };

/** Why a training pair is left out. */
export type FilterReason = 'empty' | 'length' | 'ratio' | 'tokens';

export const filterReasons: Record<FilterReason, string> = {
  empty: 'a side is empty',
  length: 'too many words',
  ratio: 'lengths too different',
  tokens: 'too many tokens',
};

/** What speaks against a pair of so many words, if anything. */
export function rejectWords(source: number, target: number, filters: Filters): FilterReason | undefined {
  if (source === 0 || target === 0) return 'empty';
  if (Math.max(source, target) > filters.maxLength) return 'length';
  const { ratio } = filters;
  if (ratio !== undefined && (source > ratio * target || target > ratio * source)) return 'ratio';
  return undefined;
}

export function rejectTokens(source: number, target: number, filters: Filters): FilterReason | undefined {
  return Math.max(source, target) > filters.maxTokens ? 'tokens' : undefined;
}
