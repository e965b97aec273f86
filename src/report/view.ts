import { InputError } from '../errors.js';
import { strategyNamed } from '../schedule/index.js';
import { MOST_METHODS, stylesFor } from './figures/figure.js';
import { isAblation } from './labels.js';
import { estimateOf, performanceMeasure } from './measures.js';
import type { SeriesReader } from './reader.js';
import { type DataSet, labelsOf, mainsOf, type Setting } from './settings.js';

/** A data set and the choices that all its tables and figures share. */
export interface ReportView {
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
 * method that was also trained in full have a separate table.
 */
export function viewOf(data: DataSet, reader: SeriesReader, baselines: readonly string[]): ReportView {
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

/** Whether it is the paper's own scheduler. */
export function isPapersMethod({ strategy }: Setting): boolean {
  return strategyNamed(strategy)?.role === 'method';
}

/** The first learned scheduler is drawn with the full line, the others with the styles that are left, in order. */
function styled({ settings }: DataSet, labels: readonly string[]): ShownMethod[] {
  const own = labels.findIndex((label) => {
    const setting = settings.find((one) => one.label === label);
    return setting !== undefined && isPapersMethod(setting);
  });
  const styles = stylesFor(labels.length, own);
  return labels.map((label, i) => ({ label, style: styles[i] }));
}

/** Two settings for the same main task: a candidate and the baseline it should beat. */
export interface Comparison {
  readonly candidate: Setting;
  readonly baseline: Setting;
}

/**
 * For each main task, the method that was best on validation data against every baseline. Validation chooses, so that the
 * test data do not. Among several settings of a baseline, the one whose configuration is nearest is taken. If there are only
 * baselines, the last of them is compared with the others.
 *
 * @param baselines names of strategies or labels of settings
 */
export function comparisons(data: DataSet, baselines: readonly string[]): Comparison[] {
  const isBaseline = (setting: Setting) => baselines.some((name) => isCalled(setting, name));
  return mainsOf(data).flatMap((main) => {
    const settings = data.settings.filter((setting) => setting.main === main);
    const called = baselines.map((name) => settings.filter((setting) => isCalled(setting, name)));
    const lastBaseline = called.findLast((found) => found.length > 0) ?? [];
    const candidate = bestOf(settings.filter((setting) => !isBaseline(setting))) ?? bestOf(lastBaseline);
    if (candidate === undefined) return [];
    const others = called
      .filter((found) => !found.includes(candidate))
      .flatMap((found) => nearestSetting(candidate, found) ?? []);
    // Where k* is k, wait-k* is wait-k: testing it twice would only weaken the correction for many tests.
    const distinct = others.filter((one, i) => others.findIndex((other) => isSameRuns(one, other)) === i);
    return distinct.map((baseline) => ({ candidate, baseline }));
  });
}

/** Rejects a name that no setting of the report has. */
export function requireKnown(sets: readonly DataSet[], baselines: readonly string[]): void {
  const settings = sets.flatMap((data) => data.settings);
  const unknown = baselines.find((name) => !settings.some((setting) => isCalled(setting, name)));
  if (unknown === undefined) return;
  const known = [...new Set(settings.flatMap(({ strategy, label }) => [strategy, label]))].join(', ');
  throw new InputError(`there is no strategy or method "${unknown}" among the runs, expected one of ${known}`, {
    key: '--baseline',
  });
}

/** Whether a name means a setting: its strategy's, or its own. */
export function isCalled({ strategy, label }: Setting, name: string): boolean {
  return [strategy, label].some((own) => own.toLowerCase() === name.toLowerCase());
}

/** The setting that is best on validation data; undefined if none was validated. */
function bestOf(settings: readonly Setting[]): Setting | undefined {
  const scored = settings.flatMap((setting) => {
    const score = estimateOf(setting, performanceMeasure);
    return score === undefined ? [] : [{ setting, score: score.mean }];
  });
  return scored.sort((a, b) => b.score - a.score)[0]?.setting;
}

function isSameRuns(a: Setting, b: Setting): boolean {
  return a.runs.length === b.runs.length && a.runs.every(({ folder }, i) => folder === b.runs[i].folder);
}

/** The setting with the fewest keys, those of the strategy aside, that differ; of equals the best on validation data. */
export function nearestSetting(to: Setting, among: readonly Setting[]): Setting | undefined {
  const distance = ({ keys }: Setting): number =>
    [...new Set([...keys.keys(), ...to.keys.keys()])].filter(
      (key) => !key.startsWith('strategy.') && JSON.stringify(keys.get(key)) !== JSON.stringify(to.keys.get(key)),
    ).length;
  const least = Math.min(...among.map(distance));
  const closest = among.filter((setting) => distance(setting) === least);
  return bestOf(closest) ?? closest[0];
}
