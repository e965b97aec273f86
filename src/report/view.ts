import { bestOf, isCalled } from './comparisons.js';
import { MOST_METHODS, stylesFor } from './figures/style.js';
import { isAblation } from './labels.js';
import type { SeriesReader } from './reader.js';
import { type DataSet, labelsOf, type Setting } from './settings.js';

/** A data set with what all its tables and figures have in common. */
export interface View {
  readonly data: DataSet;
  readonly reader: SeriesReader;
  readonly baselines: readonly string[];
  /** The methods in figures. */
  readonly methods: readonly ShownMethod[];
  /** Which methods figures leave out, as a sentence; empty if none. */
  readonly leftOut: string;
}

export interface ShownMethod {
  readonly label: string;
  /** Number of its style, the same in all figures. */
  readonly style: number;
}

/**
 * Chooses the methods that figures show: the baselines, and the best of the others on validation data. Ablations of a
 * method that is there as a whole have a table of their own.
 */
export function viewOf(data: DataSet, reader: SeriesReader, baselines: readonly string[]): View {
  const isWhole = (setting: Setting): boolean =>
    !isAblation(setting) || data.settings.every((other) => other.strategy !== setting.strategy || isAblation(other));
  const whole = { ...data, settings: data.settings.filter(isWhole) };
  const labels = labelsOf(whole);
  const shown = labels.length <= MOST_METHODS ? labels : mostTelling(whole, baselines);
  const leftOut =
    shown.length === labels.length
      ? ''
      : `Shown are ${shown.length} of ${labels.length} methods: baselines, and the best of the others on validation data.`;
  return { data, reader, baselines, methods: styled(data, shown), leftOut };
}

function mostTelling(data: DataSet, baselines: readonly string[]): string[] {
  const all = labelsOf(data);
  const chosen = new Set<string>();
  for (const name of baselines) {
    const best = bestOf(data.settings.filter((setting) => isCalled(setting, name)));
    if (best !== undefined) chosen.add(best.label);
  }
  while (chosen.size < MOST_METHODS) {
    const best = bestOf(data.settings.filter(({ label }) => !chosen.has(label)));
    const next = best?.label ?? all.find((label) => !chosen.has(label));
    if (next === undefined) break;
    chosen.add(next);
  }
  return all.filter((label) => chosen.has(label));
}

/** The first learned scheduler is drawn with the full line, the others with the styles that are left, in order. */
function styled({ settings }: DataSet, labels: readonly string[]): ShownMethod[] {
  const own = labels.findIndex((label) => settings.find((setting) => setting.label === label)?.strategy === 'learned');
  const styles = stylesFor(labels.length, own);
  return labels.map((label, i) => ({ label, style: styles[i] }));
}
