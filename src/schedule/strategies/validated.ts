import type { Random } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import { type Problem, remainingGroups, requireAbilities, type Status } from '../problem.js';
import type { BlendedChoice, EpisodeReport, SampledChoice, Strategy } from '../strategy.js';
import { Policy } from './policy.js';
import { argmaxRows } from './sampling.js';
import { Standardisation } from './standardisation.js';

export interface ValidatedOptions {
  /** Widths of the hidden layers. Default [32]. */
  readonly hidden?: readonly number[];
  /** η₂ of Adam. Default 5e-7, as in qlib. */
  readonly learningRate?: number;
  /** Feature groups that the scheduler does not see. Default none. */
  readonly without?: readonly string[];
}

type Able<Batch> = Problem<Batch> & Required<Pick<Problem<Batch>, 'mainLosses' | 'validationBatches'>>;

/**
 * The scheduler as qlib's TCTS code has it, for comparison. It never samples: a sample's task is the most probable one
 * (`greedy`), or all tasks weighted with their probabilities (`soft`). It is not trained on decisions made in training
 * either; at the end of an episode it makes a step of Adam (gradients clipped to ±3) for each validation batch, on
 *
 *     (1/B) Σᵢ v · log P(φ(Iᵢ; ω) = argmax φ(Iᵢ; ω)),   v = main-task loss of the batch,
 *
 * which it minimises. As v > 0, that can only lower the largest probability: it drives the policy towards uniform.
 */
export class Validated<Batch> implements Strategy<Batch> {
  private readonly groups: readonly string[];
  /** Left empty: features as they are. */
  private readonly scale: Standardisation;

  private constructor(
    readonly name: 'greedy' | 'soft',
    private readonly problem: Able<Batch>,
    private readonly network: Policy,
    private readonly width: number,
    private readonly options: Required<ValidatedOptions>,
  ) {
    this.groups = remainingGroups(problem.features, options.without).map((group) => group.name);
    this.scale = new Standardisation(width);
  }

  static async create<Batch>(
    name: 'greedy' | 'soft',
    problem: Problem<Batch>,
    random: Random,
    { hidden = [32], learningRate = 5e-7, without = [] }: ValidatedOptions = {},
    threads = 1,
  ): Promise<Validated<Batch>> {
    const able = requireAbilities(problem, name, 'mainLosses', 'validationBatches');
    if (name === 'soft') requireAbilities(problem, name, 'trainBlend');
    const width = remainingGroups(problem.features, without).reduce((sum, group) => sum + group.width, 0);
    const network = await Policy.create(width, problem.tasks.length, random.fork(name), {
      hidden,
      activation: 'relu',
      optimizer: { name: 'adam' },
      clip: { value: 3 },
      startUniform: false,
      threads,
    });
    return new Validated(name, able, network, width, { hidden, learningRate, without });
  }

  async policy(batch: Batch, status: Status): Promise<Float32Array> {
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
