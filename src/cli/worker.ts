import { availableParallelism } from 'node:os';
import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import { type QueueFlags, queueOptions, wholeNumber } from './flags.js';

interface WorkerFlags extends QueueFlags {
  readonly runs: string;
  readonly cores: number;
  readonly concurrency?: number;
  readonly lease: number;
  readonly quiet: boolean;
}

export function registerWorker(program: Command): void {
  queueOptions(
    program
      .command('worker')
      .description('Run jobs of sweeps started with --queue, on any number of machines.')
      .requiredOption('--runs <folder>', 'the folder shared by all machines: the --out of the sweep'),
  )
    .addOption(
      new Option('--cores <n>', 'cores used by all jobs together')
        .argParser(wholeNumber('--cores'))
        .default(availableParallelism(), 'all'),
    )
    .option('--concurrency <n>', 'jobs at a time (default: as many as the cores allow)', wholeNumber('--concurrency'))
    .option(
      '--lease <seconds>',
      'seconds without a heartbeat after which others take its jobs',
      wholeNumber('--lease'),
      30,
    )
    .option('--quiet', 'do not report jobs', false)
    .addHelpText(
      'after',
      `
A worker that dies has its jobs taken over and resumed by others. The first Ctrl-C (or SIGTERM) lets its runs save
themselves and gives them back; the next one ends it at once.

Examples:
  tcts worker --queue redis://queue-host --runs /mnt/shared/runs
  TCTS_QUEUE=rediss://user:password@queue-host tcts worker --runs /mnt/shared/runs --cores 8`,
    )
    .action(workerCommand);
}

async function workerCommand(flags: WorkerFlags): Promise<void> {
  const { queue, queueName: name, runs, cores, concurrency, lease: leaseSeconds, quiet } = flags;
  if (queue === undefined) throw new InputError('expected the address of the queue', { key: '--queue' });
  const { serveQueue } = await import('../sweep/queue/worker.js');
  const { listenForInterrupt } = await import('../run/index.js');

  const tell = (line: string) => process.stderr.write(`${line}\n`);
  const ending = new AbortController();
  const interrupt = listenForInterrupt({
    announce: (signal) => {
      tell(`${signal}: the runs save themselves and are given back; once more to end at once`);
      ending.abort();
    },
  });
  try {
    const note = quiet ? undefined : tell;
    await serveQueue(queue, { runs, name, cores, concurrency, leaseSeconds, signal: ending.signal, note });
  } finally {
    interrupt.dispose();
  }
}
