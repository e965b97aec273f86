import { groupBy } from '../../groups.js';
import { absent, type Block, slug } from '../document.js';
import { isAblation, WITHOUT } from '../labels.js';
import { estimateOf, headline, type Measure } from '../measures.js';
import { mainsOf, type Setting, taskTitle } from '../settings.js';
import { isChosen } from '../sweeps.js';
import { type Cell, type Row, signed, textColumn } from '../table.js';
import type { View } from '../view.js';

/**
 * What a scheduler loses without some of its features, for every scheduler of which there are such runs: the paper's table
 * "Ablation study for feature selection".
 */
export function ablationTables({ data }: View): Block[] {
  const families = [...groupBy(data.settings, (setting) => familyOf(setting, data.chosenKeys)).values()].filter(
    (family) => family.some((one) => withoutOf(one) === '') && family.some((one) => withoutOf(one) !== ''),
  );
  if (families.length === 0) {
    return [absent('No ablation of features: no two schedulers differ in strategy.without alone.')];
  }
  const measure = headline(data);
  const mains = mainsOf(data);
  return families.map((family, i) => {
    const removed = [...new Set(family.map(withoutOf))].sort((a, b) => Number(a !== '') - Number(b !== ''));
    const [{ label }] = family.filter((one) => withoutOf(one) === '');
    return {
      kind: 'table',
      table: {
        id: `${slug(data.title)}-features${i === 0 ? '' : `-${i + 1}`}`,
        title: `Feature selection, ${label}`,
        caption: `${measure.name} without groups of features (strategy.without), the change against all features, and its rank: 1 for the group that is missed most. Mean ± standard deviation over the seeds.`,
        columns: [
          textColumn('Features'),
          ...mains.map((main) => ({ title: taskTitle(data.kind, main), measures: [measure.name] })),
        ],
        rows: removed.map(
          (without): Row => ({
            cells: [
              without === '' ? 'all' : `− ${without}`,
              ...mains.map((main) =>
                cellOf(
                  family.filter((one) => one.main === main),
                  without,
                  measure,
                ),
              ),
            ],
          }),
        ),
      },
    };
  });
}

function cellOf(settings: readonly Setting[], without: string, measure: Measure): Cell {
  const scored = settings.flatMap((setting) => {
    const figure = estimateOf(setting, measure);
    return figure === undefined ? [] : [{ without: withoutOf(setting), figure }];
  });
  const own = scored.find((one) => one.without === without)?.figure;
  const all = scored.find((one) => one.without === '')?.figure;
  if (own === undefined || all === undefined || without === '') return [own];
  const missed = scored.filter((one) => one.without !== '').map(({ figure }) => figure.mean);
  const rank = 1 + missed.filter((mean) => (measure.better === 'higher' ? mean < own.mean : mean > own.mean)).length;
  const change = (100 * (own.mean - all.mean)) / Math.abs(all.mean);
  return [{ ...own, note: `(${signed(change, 2)} %, rank ${rank})` }];
}

function withoutOf(setting: Setting): string {
  return isAblation(setting) ? (setting.keys.get(WITHOUT) as unknown[]).join(', ') : '';
}

function familyOf({ keys }: Setting, chosenKeys: readonly string[]): string {
  const aside = [WITHOUT, 'problem.main', ...chosenKeys];
  return JSON.stringify([...keys].filter(([key]) => !isChosen(key, aside)).sort());
}
