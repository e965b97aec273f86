import { InputError } from '../errors.js';
import { isRecord } from '../run/config/key-schema.js';
import type { Source } from '../run/config/sources.js';
import type { Grid, GridConfig } from './grid.js';

/**
 * What a grid sets, in all runs or along an axis, with `{data}` in its texts replaced by a folder, so that one grid can
 * name several data sets that lie beside each other, wherever they are.
 *
 * @param data undefined: none was given; a grid that needs one is refused
 */
export function withDataFolder({ config, places, file }: Grid, data: string | undefined): GridConfig {
  let isUsed = false;
  const fill = <T>(value: T, at: string): T =>
    mapTexts(value, at, (text, key) => {
      if (!text.includes(PLACE)) return text;
      isUsed = true;
      return text.replaceAll(PLACE, data ?? missing(key, places));
    }) as T;
  const set = fill(config.set, 'set');
  const groups = config.groups.map((group, g) => ({
    ...group,
    set: fill(group.set, `groups.${g}.set`),
    grid: fill(group.grid, `groups.${g}.grid`),
    select: fill(group.select, `groups.${g}.select`),
  }));
  if (data !== undefined && !isUsed) {
    throw new InputError(`no value of ${file} contains ${PLACE}, so there is nothing to fill in`, { key: '--data' });
  }
  return { ...config, set, groups };
}

const PLACE = '{data}';

function missing(key: string, places: Source['places']): never {
  const sentence = `${PLACE} stands for the folder that --data names, but there is no --data`;
  throw new InputError(sentence, { ...places.get(key), key });
}

/** A value with every text in it replaced; `at` is its key in the grid. */
function mapTexts(value: unknown, at: string, replace: (text: string, key: string) => string): unknown {
  if (typeof value === 'string') return replace(value, at);
  if (Array.isArray(value)) return value.map((item, i) => mapTexts(item, `${at}.${i}`, replace));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTexts(item, `${at}.${key}`, replace)]));
}
