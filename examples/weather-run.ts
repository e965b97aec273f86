/** Trains the weather problem with several strategies and compares them. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { InputError, Random } from 'tcts';
import { mean, standardDeviation } from 'tcts/metrics';
import { bestCheckpoint, checkpointFolder, commonKeys, isRun, parseConfig, runSession, section } from 'tcts/run';
import { createStrategy, partOf, strategySchema, totalUpdates, train, trainee, trainingSchema } from 'tcts/schedule';
import { HOURS, weatherProblem } from './weather.js';
import { readWeather, type Weather } from './weather-data.js';

const USAGE = `node examples/dist/weather-run.js WEATHER.csv [--strategies fixed,mtl,learned] [--seeds 1,2,3]
  [--episodes 30] [--steps 100] [--out runs/weather]`;

const configSchema = section({ ...commonKeys, strategy: strategySchema, training: trainingSchema });

/** Figures of the model that was best on validation data. */
type Figures = Readonly<Record<string, number>>;

/** Trains in a run folder, or goes on with the run that is there. Undefined if it was interrupted. */
async function trainingRun(data: Weather, folder: string, values: Record<string, unknown>) {
  const config = parseConfig(configSchema, values, folder);
  const random = new Random(config.seed);
  const problem = await weatherProblem(data, random.fork('problem'));
  const strategy = await createStrategy(config.strategy, problem, random.fork('strategy'));
  try {
    const subject = trainee(problem, strategy);
    const total = totalUpdates(config.training, strategy);
    const options = { folder, config, total, resume: isRun(folder), resumeCommand: 'the same command again' };
    const outcome = await runSession(options, subject, (session) => train(subject, session, config.training));
    if (outcome.state === 'interrupted') return undefined;
    const best = bestCheckpoint(checkpointFolder(folder))!;
    const { subject: saved } = best.state as { subject: unknown };
    problem.restore(partOf({ tensors: best.tensors, state: saved }, 'problem'));
    return { validation: outcome.best!.score, ...(await problem.test!()) };
  } finally {
    await strategy.close?.();
    await problem.close?.();
  }
}

async function compare(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      strategies: { type: 'string', default: 'fixed,mtl,learned' },
      seeds: { type: 'string', default: '1,2,3' },
      episodes: { type: 'string', default: '30' },
      steps: { type: 'string', default: '100' },
      out: { type: 'string', default: 'runs/weather' },
    },
  });
  if (positionals.length !== 1) throw new InputError(`expected one file: ${USAGE}`);
  const data = readWeather(positionals[0], HOURS);
  const training = { episodes: Number(values.episodes), steps: Number(values.steps) };

  const table: string[] = [];
  for (const name of values.strategies.split(',')) {
    const runs: Figures[] = [];
    for (const seed of values.seeds.split(',').map(Number)) {
      const folder = join(values.out, `${name}-${seed}`);
      const figures = await trainingRun(data, folder, { seed, strategy: { name }, training });
      if (figures === undefined) {
        process.exitCode = 130;
        return;
      }
      runs.push(figures);
    }
    const names = Object.keys(runs[0]);
    if (table.length === 0) table.push(row('strategy', names));
    table.push(
      row(
        name,
        names.map((figure) => spread(runs.map((figures) => figures[figure]))),
      ),
    );
  }
  console.log(table.join('\n'));
}

function row(title: string, cells: readonly string[]): string {
  return [title.padEnd(10), ...cells.map((cell) => cell.padStart(18))].join(' ');
}

/** Mean ± standard deviation over the seeds. */
function spread(values: readonly number[]): string {
  const centre = mean(values).toFixed(4);
  return values.length < 2 ? centre : `${centre} ± ${standardDeviation(values).toFixed(4)}`;
}

try {
  await compare();
} catch (error) {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (!(error instanceof InputError) && !code.startsWith('ERR_PARSE_ARGS')) throw error;
  console.error(message);
  process.exitCode = 1;
}
