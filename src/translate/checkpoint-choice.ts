import { InputError } from '../errors.js';
import {
  bestCheckpoint,
  checkpointFolder,
  latestCheckpoint,
  type SavedCheckpoint,
  wholeCheckpoints,
} from '../run/index.js';

/** Which parameters of a run: those that were best on the main task, the newest, or the mean of the newest n. */
export type CheckpointChoice = 'best' | 'latest' | `average:${number}`;

export function checkpointInWords(choice: string): string {
  const [name, count] = choice.split(':');
  return count === undefined ? `${name} parameters` : `mean of the last ${count} checkpoints`;
}

/** The checkpoints of a run whose mean is chosen, the newest first. */
export function* chosenCheckpoints(run: string, choice: CheckpointChoice): Generator<SavedCheckpoint> {
  const folder = checkpointFolder(run);
  const count = Number(/^average:(\d+)$/.exec(choice)?.[1] ?? 1);
  if (count === 1) {
    const newest = () => latestCheckpoint(folder, () => {});
    const saved = choice === 'best' ? (bestCheckpoint(folder) ?? newest()) : newest();
    if (saved === undefined) throw new InputError('the run has no checkpoint yet', { file: run });
    yield saved;
    return;
  }
  let found = 0;
  for (const saved of wholeCheckpoints(folder, () => {})) {
    yield saved;
    if (++found === count) return;
  }
  const sentence = `there are ${found} checkpoints, ${choice} needs ${count}: train with --set saving.keep=${count}`;
  throw new InputError(sentence, { file: folder });
}
