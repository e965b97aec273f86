import { groupBy } from '../../groups.js';
import { isCalled, nearest } from '../comparisons.js';
import { absent, type Block, slug } from '../document.js';
import type { ReportedRun } from '../runs.js';
import type { Setting } from '../settings.js';
import { type Estimate, estimate, signed, textColumn } from '../table.js';
import type { View } from '../view.js';

/** Updates per second of each method, against the first baseline of the same model: the paper's table of speed. */
export function speedTable({ data, reader, baselines }: View): Block {
  const timed = data.settings.flatMap((setting) => setting.runs.map((run) => ({ setting, run, cores: coresOf(run) })));
  const rows = [...groupBy(timed, ({ setting, cores }) => `${cores} ${setting.label}`).values()].flatMap((runs) => {
    const figure = estimate(
      runs.map(({ run }) => reader.speed(run) ?? Number.NaN),
      2,
    );
    return figure === undefined ? [] : [{ ...runs[0], figure }];
  });
  if (rows.length === 0) return absent('No training speed: no run has two lines in timings.jsonl.');
  const referenceOf = ({ setting, cores }: (typeof rows)[number]): Estimate | undefined => {
    const alike = rows.filter((row) => row.cores === cores && modelOf(row.setting) === modelOf(setting));
    const found = baselines
      .map((name) => alike.filter((row) => isCalled(row.setting, name)))
      .find((all) => all.length > 0);
    const closest = nearest(setting, found?.map((row) => row.setting) ?? []);
    return found?.find((row) => row.setting === closest)?.figure;
  };
  return {
    kind: 'table',
    table: {
      id: `${slug(data.title)}-speed`,
      title: 'Training speed',
      caption:
        'Updates per second, from the times of the log without the validations, and against the first baseline with the ' +
        'same model and as many threads and workers. Mean ± standard deviation over all runs of a method, whatever their main task. Only runs ' +
        'that had a machine of one kind to themselves can be compared.',
      columns: [textColumn('Method'), textColumn('threads × workers'), { title: 'updates/s', measures: ['updates/s'] }],
      rows: rows.map((row) => {
        const { setting, cores, figure } = row;
        const reference = referenceOf(row);
        const change = reference && reference !== figure ? 100 * (figure.mean / reference.mean - 1) : undefined;
        return {
          cells: [
            setting.label,
            cores,
            [change === undefined ? figure : { ...figure, note: `(${signed(change, 0)} %)` }],
          ],
        };
      }),
    },
  };
}

function modelOf({ keys }: Setting): unknown {
  return keys.get('problem.model.name');
}

function coresOf({ config }: ReportedRun): string {
  const { threads, workers } = config as { threads?: unknown; workers?: unknown };
  // As many workers as threads, with one thread each.
  if (workers === 'auto') return `1 × ${String(threads ?? '?')}`;
  return `${String(threads ?? '?')} × ${String(workers ?? '?')}`;
}
