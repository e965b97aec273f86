import { setTimeout as sleep } from 'node:timers/promises';
import { launch } from '../mpi.js';
import { Ranks } from '../ranks.js';
import { reportError } from './report-errors.js';

/**
 * Runs a command in every process of the MPI job that this one belongs to, or alone, without ranks, if there is none.
 * A process whose command fails says so and ends the job: the others may be waiting for it.
 */
export async function inMpiJob(command: (ranks?: Ranks) => Promise<void>): Promise<void> {
  const job = launch();
  if (job === undefined) return command();
  let ranks: Ranks | undefined;
  try {
    ranks = await Ranks.open(job);
    await command(ranks);
    ranks.close();
  } catch (error) {
    process.exitCode = 1;
    // What is wrong in all processes, such as a typing error in the configuration, is rank 0's to say.
    if (job.rank > 0) await sleep(GRACE);
    reportError(error, job.rank === 0 ? 'tcts' : `tcts, process ${job.rank}`);
    ranks?.abort(1);
  }
}

/** Milliseconds in which rank 0 comes to the same end, if it does. */
const GRACE = 2000;
