/**
 * JSON that gives back the very number it was given: NaN, the infinities and -0, which JSON has no word for, are
 * written as `{"$number": "-0"}`. A state that is saved and restored must not differ in a single bit.
 */
export function exactStringify(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => {
    if (typeof item !== 'number' || (Number.isFinite(item) && !Object.is(item, -0))) return item;
    return { [MARK]: Object.is(item, -0) ? '-0' : String(item) };
  });
}

export function exactParse(text: string): unknown {
  return JSON.parse(text, (_key, item: unknown) => {
    if (typeof item !== 'object' || item === null || !Object.hasOwn(item, MARK)) return item;
    return Number((item as Record<string, unknown>)[MARK]);
  });
}

const MARK = '$number';
