import { z } from 'zod';
import type { Random } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import { type Problem, remainingGroups, requireAbilities, type Status } from '../problem.js';
import {
  type BlendedChoice,
  describeStrategy,
  type EpisodeReport,
  type SampledChoice,
  type Strategy,
  type StrategyDescription,
} from '../strategy.js';
import { argmaxRows } from './distribution.js';
import { hiddenWidths, SchedulerNetwork, Standardisation, withoutGroups } from './scheduler.js';

const optionsSchema = z.strictObject({
  hidden: hiddenWidths.default([32]),
  learningRate: z.number().positive().default(5e-7).describe('η₂ of Adam, once for each validation batch.'),
  without: withoutGroups,
});

type QlibOptions = z.output<typeof optionsSchema>;

type Able<Batch> = Problem<Batch> & Required<Pick<Problem<Batch>, 'mainLosses' | 'validationBatches'>>;

/**
 * The scheduler of qlib's TCTS code, for comparison. It never samples: a sample's task is the most probable one
 * (`greedy`), or all tasks weighted by their probabilities (`soft`). Nor does it learn from decisions made in training:
 * at the end of an episode it takes an Adam step (gradients clipped to ±3) for each validation batch, on
 *
 *     (1/B) Σᵢ v · log P(φ(Iᵢ; ω) = argmax φ(Iᵢ; ω)),   v = main-task loss of the batch,
 *
 * which it minimises. Since v > 0, that can only lower the largest probability and drives the scheduler towards uniform.
 */
class QlibScheduler<Batch> implements Strategy<Batch> {
  private readonly groups: readonly string[];
  /** Left empty: features are not scaled. */
  private readonly scale: Standardisation;

  private constructor(
    readonly name: 'greedy' | 'soft',
    private readonly problem: Able<Batch>,
    private readonly network: SchedulerNetwork,
    private readonly width: number,
    private readonly options: QlibOptions,
  ) {
    this.groups = remainingGroups(problem.features, options.without).map((group) => group.name);
    this.scale = new Standardisation(width);
  }

  static async create<Batch>(
    name: 'greedy' | 'soft',
    problem: Problem<Batch>,
    random: Random,
    options: QlibOptions,
    threads: number,
  ): Promise<QlibScheduler<Batch>> {
    const { hidden, without } = options;
    const able = requireAbilities(problem, name, 'mainLosses', 'validationBatches');
    if (name === 'soft') requireAbilities(problem, name, 'trainBlend');
    const width = remainingGroups(problem.features, without).reduce((sum, group) => sum + group.width, 0);
    const network = await SchedulerNetwork.create(width, problem.tasks.length, random.fork(name), {
      hidden,
      activation: 'relu',
      optimizer: { name: 'adam' },
      clip: { value: 3 },
      startUniform: false,
      threads,
    });
    return new QlibScheduler(name, able, network, width, options);
  }

  async probabilities(batch: Batch, status: Status): Promise<Float32Array> {
    return (await this.evaluate(batch, status)).probabilities;
  }

  async choose(batch: Batch, status: Status): Promise<SampledChoice | BlendedChoice> {
    const size = this.problem.sizeOf(batch);
    const { probabilities, entropy } = await this.evaluate(batch, status);
    if (this.name === 'soft') return { kind: 'blended', weights: probabilities, entropy: entropy / size };
    const tasks = new Int32Array(size);
    argmaxRows(probabilities, tasks);
    return { kind: 'sampled', tasks, weights: new Float32Array(size).fill(1), entropy: entropy / size };
  }

  async endEpisode(_performance: number, status: Status): Promise<EpisodeReport> {
    let [norms, count] = [0, 0];
    for (const batch of this.problem.validationBatches()) {
      const { features, probabilities } = await this.evaluate(batch, status);
      const tasks = new Int32Array(this.problem.sizeOf(batch));
      argmaxRows(probabilities, tasks);
      const losses = await this.problem.mainLosses(batch);
      const v = losses.reduce((sum, loss) => sum + loss, 0) / losses.length;
      norms += await this.network.ascend([{ features, tasks }], this.scale, {
        gain: -v / tasks.length,
        entropy: 0,
        learningRate: this.options.learningRate,
      });
      count++;
    }
    return count === 0 ? {} : { gradNorm: norms / count };
  }

  capture(): Snapshot {
    return this.network.capture();
  }

  restore(snapshot: Snapshot): void {
    this.network.restore(snapshot);
  }

  async close(): Promise<void> {
    await this.network.close();
  }

  private async evaluate(batch: Batch, status: Status) {
    const features = new Float32Array(this.problem.sizeOf(batch) * this.width);
    await this.problem.writeFeatures(batch, status, this.groups, features);
    return { features, ...(await this.network.evaluate(features, this.scale)) };
  }
}

export const greedy = describeQlib('greedy', "As in qlib's code: always the most probable task.");
export const soft = describeQlib('soft', "As in qlib's code: all tasks, weighted by their probabilities.");

function describeQlib(name: 'greedy' | 'soft', summary: string): StrategyDescription {
  return describeStrategy({
    name,
    summary,
    title: `${name} (qlib)`,
    learns: 'every episode',
    sees: 'features',
    extraCost: 'a pass over the validation data',
    knobs: ['learningRate', 'hidden', 'without'],
    options: optionsSchema,
    create: (options, problem, { random, threads }) => QlibScheduler.create(name, problem, random, options, threads),
  });
}
