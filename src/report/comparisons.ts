import { InputError } from '../errors.js';
import { estimateOf, validationPerformance } from './measures.js';
import { type DataSet, mainsOf, type Setting } from './settings.js';

/** Two settings for the same main task, of which one is asked to be better. */
export interface Comparison {
  readonly candidate: Setting;
  readonly baseline: Setting;
}

/**
 * For each main task, the method that was best on validation data against every baseline. Validation chooses, so that the
 * test data do not. Among several settings of a baseline, the one whose configuration is nearest is taken. Where there are
 * only baselines, the last of them is compared with the others.
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
      .flatMap((found) => nearest(candidate, found) ?? []);
    // Where k* is k, wait-k* is wait-k: to ask twice would only weaken the answer.
    const distinct = others.filter((one, i) => others.findIndex((other) => isSameRuns(one, other)) === i);
    return distinct.map((baseline) => ({ candidate, baseline }));
  });
}

/** Refuses a name that no setting of the report has. */
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
export function bestOf(settings: readonly Setting[]): Setting | undefined {
  const scored = settings.flatMap((setting) => {
    const score = estimateOf(setting, validationPerformance);
    return score === undefined ? [] : [{ setting, score: score.mean }];
  });
  return scored.sort((a, b) => b.score - a.score)[0]?.setting;
}

function isSameRuns(a: Setting, b: Setting): boolean {
  return a.runs.length === b.runs.length && a.runs.every(({ folder }, i) => folder === b.runs[i].folder);
}

/** The setting with the fewest keys, those of the strategy aside, that differ; of equals the best on validation data. */
export function nearest(to: Setting, among: readonly Setting[]): Setting | undefined {
  const distance = ({ keys }: Setting): number =>
    [...new Set([...keys.keys(), ...to.keys.keys()])].filter(
      (key) => !key.startsWith('strategy.') && JSON.stringify(keys.get(key)) !== JSON.stringify(to.keys.get(key)),
    ).length;
  const least = Math.min(...among.map(distance));
  const closest = among.filter((setting) => distance(setting) === least);
  return bestOf(closest) ?? closest[0];
}
