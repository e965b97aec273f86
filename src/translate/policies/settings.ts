import { InputError } from '../../errors.js';

/** Refuses what is not a whole number from 1 on. */
export function wholeFrom1(key: string, value: number): void {
  if (Number.isSafeInteger(value) && value >= 1) return;
  throw new InputError(`expected a whole number from 1 on, found ${value}`, { key });
}

/** Refuses what is not a probability. */
export function probability(key: string, value: number): void {
  if (value >= 0 && value <= 1) return;
  throw new InputError(`expected a number from 0 to 1, found ${value}`, { key });
}
