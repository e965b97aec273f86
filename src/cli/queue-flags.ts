import { type Command, Option } from 'commander';

export interface QueueFlags {
  readonly queue?: string;
  readonly queueName?: string;
}

/** The options that say which queue is meant. The environment keeps a password out of the list of processes. */
export function queueOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--queue <url>', 'a queue in Redis: redis://[user:password@]host[:port], or rediss:// for TLS').env(
        'TCTS_QUEUE',
      ),
    )
    .option('--queue-name <name>', 'which queue, if there are several in that Redis (default: "runs")');
}
