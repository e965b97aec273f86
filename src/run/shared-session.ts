import { InputError } from '../errors.js';
import type { Ranks } from '../ranks.js';
import { exactStringify, type Snapshot } from './checkpoint.js';
import type { LogRecord } from './metrics-log.js';
import {
  type Conclude,
  type Resumable,
  type RunSession,
  type RunSessionOptions,
  runSession,
  type SessionOutcome,
} from './session.js';

/**
 * `runSession` for a run on which several processes work in lockstep. Rank 0 has the folder, decides when a signal
 * asks to stop, and tells the others where to begin and when to end; they write no files and ignore signals.
 */
export async function runSharedSession(
  ranks: Ranks,
  options: RunSessionOptions,
  subject: Resumable,
  loop: (session: RunSession) => Promise<void>,
  conclude: Conclude = async () => {},
): Promise<SessionOutcome> {
  if (ranks.rank === 0) {
    const resumeCommand = `mpirun -n ${ranks.size} tcts train --resume ${options.folder}`;
    const shared = { resumeCommand, ...options, processes: ranks.size };
    const shareLoop = async (folder: RunSession) => {
      const session = new SharedSession(ranks, folder);
      shareSnapshot(ranks, session.step > 0 ? subject.capture() : undefined);
      await loop(session);
    };
    return runSession(shared, subject, shareLoop, (outcome, write) => conclude(ranks.fromFirst(outcome), write));
  }
  for (const signal of SIGNALS) process.on(signal, ignore);
  try {
    const session = new SharedSession(ranks, undefined);
    const start = shareSnapshot(ranks, undefined);
    if (start !== undefined) subject.restore(start);
    await loop(session);
    const outcome = ranks.fromFirst<SessionOutcome | undefined>(undefined)!;
    await conclude(outcome, () => {});
    return outcome;
  } finally {
    for (const signal of SIGNALS) process.off(signal, ignore);
  }
}

/** The snapshot of rank 0, if it has one, in all ranks; the others pass undefined. */
export function shareSnapshot(ranks: Ranks, own: Snapshot | undefined): Snapshot | undefined {
  const head = ranks.fromFirst(own && { names: [...own.tensors.keys()], state: own.state });
  if (head === undefined) return undefined;
  // One by one: all tensors together may be more than MPI can count.
  const tensors = head.names.map((name) => [name, ranks.fromFirst(own?.tensors.get(name))!] as const);
  return { tensors: new Map(tensors), state: head.state };
}

/** The session of one of the ranks. Rank 0 shares with all what it learns from its folder. */
class SharedSession implements RunSession {
  private view: View;

  constructor(
    private readonly ranks: Ranks,
    /** Rank 0's own session. */
    private readonly folder: RunSession | undefined,
  ) {
    this.view = this.look();
  }

  get step(): number {
    return this.view.step;
  }

  get stopRequested(): boolean {
    return this.view.stopRequested;
  }

  get shouldStop(): boolean {
    return this.view.shouldStop;
  }

  get bestSoFar(): RunSession['bestSoFar'] {
    return this.view.bestSoFar;
  }

  log(step: number, record: LogRecord): void {
    const records = this.ranks.share(exactStringify(record));
    const other = records.findIndex((found) => found !== records[0]);
    if (other > 0) {
      throw new InputError(
        `the processes of the run differ at step ${step}: process 0 has ${records[0]}, process ${other} ` +
          `has ${records[other]}; they need the same data, the same version and the same kind of processor`,
      );
    }
    this.folder?.log(step, record);
  }

  progress(...progress: Parameters<RunSession['progress']>): void {
    this.folder?.progress(...progress);
  }

  note(text: string): void {
    this.folder?.note(text);
  }

  best(...score: Parameters<RunSession['best']>): boolean {
    const isBest = this.ranks.fromFirst(this.folder?.best(...score))!;
    this.view = this.look();
    return isBest;
  }

  async maybeSave(step: number): Promise<void> {
    await this.folder?.maybeSave(step);
    this.view = this.look();
  }

  private look(): View {
    const { folder } = this;
    return this.ranks.fromFirst(
      folder && {
        step: folder.step,
        stopRequested: folder.stopRequested,
        shouldStop: folder.shouldStop,
        bestSoFar: folder.bestSoFar,
      },
    )!;
  }
}

/** What all ranks know about rank 0's session: the same in all, even if a signal arrives in between. */
type View = Pick<RunSession, 'step' | 'stopRequested' | 'shouldStop' | 'bestSoFar'>;

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

function ignore(): void {}
