import { absent, type Section, slug } from '../document.js';
import { estimateOf, type Measure, validationPerformance } from '../measures.js';
import type { View } from '../view.js';
import { methodRows, OVER_SEEDS } from './results.js';

/** Results of a problem that the report has no layout for: the figures that its runs ended with. */
export function otherSection({ data }: View): Section {
  const title = `Results: ${data.title}`;
  const tests = data.settings.flatMap(({ runs }) => runs.flatMap(({ result }) => Object.keys(result?.test ?? {})));
  const measures: Measure[] = [
    validationPerformance,
    ...[...new Set(tests)].map(
      (name): Measure => ({
        name,
        digits: 4,
        better: /loss|error|mse/i.test(name) ? 'lower' : 'higher',
        of: ({ result }) => result?.test?.[name] ?? Number.NaN,
      }),
    ),
  ];
  if (data.settings.every((setting) => measures.every((measure) => estimateOf(setting, measure) === undefined))) {
    return { title, blocks: [absent('No results: no run has written any.')] };
  }
  const names = measures.map(({ name }) => name).join(', ');
  const table = methodRows(data, measures, {
    id: `${slug(data.title)}-results`,
    title: 'Results',
    caption: `${names[0].toUpperCase()}${names.slice(1)}, from left to right. ${OVER_SEEDS}`,
  });
  return { title, blocks: [{ kind: 'table', table }] };
}
