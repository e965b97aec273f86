import { z } from 'zod';
import { Random, type RandomState } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import { type GradientAccess, type Problem, requireAbilities, type Status } from '../problem.js';
import { stateOnly } from '../snapshots.js';
import { describeStrategy, type SampledChoice, type Strategy } from '../strategy.js';
import { drawAll, repeated, softmaxOf } from './distribution.js';

const optionsSchema = z.strictObject({
  learningRate: z.number().positive().default(0.5).describe('η of the logits.'),
  every: z.int().min(1).default(10).describe('Updates between two measurements of the gradients.'),
});

type AlignedOptions = z.output<typeof optionsSchema>;

/**
 * Tasks whose gradients point where the main task's validation gradient points, in the manner of DDS (Wang et al.
 * 2020): the reward of a task is the cosine of the two. All K cosines are measured, so the expected reward
 * J = Σ p_T R_T with p = softmax(ψ) is maximised exactly instead of with one sampled action:
 *
 *     R_T = cos(∇θ ℓ(batch, T), ∇θ ℓ_main(D_v)),   ψ_T ← ψ_T + η p_T (R_T − Σ p R)
 */
class Aligned<Batch> implements Strategy<Batch> {
  readonly name = 'aligned';
  private readonly gradients: GradientAccess<Batch>;
  private random: Random;
  private logits: number[];
  /** Squared norms of the gradients of J in this episode. */
  private norms: { squares: number; count: number } = { squares: 0, count: 0 };

  constructor(
    private readonly problem: Problem<Batch>,
    random: Random,
    private readonly options: AlignedOptions,
  ) {
    this.gradients = requireAbilities(problem, 'aligned', 'gradients').gradients;
    this.random = random.fork('aligned');
    this.logits = new Array<number>(problem.tasks.length).fill(0);
  }

  async probabilities(batch: Batch): Promise<Float32Array> {
    return repeated(softmaxOf(this.logits), this.problem.sizeOf(batch));
  }

  async choose(batch: Batch, { update }: Status): Promise<SampledChoice> {
    if ((update - 1) % this.options.every === 0) await this.measure(batch);
    return drawAll(softmaxOf(this.logits), this.problem.sizeOf(batch), this.random);
  }

  async endEpisode() {
    const { squares, count } = this.norms;
    this.norms = { squares: 0, count: 0 };
    return count === 0 ? {} : { gradNorm: Math.sqrt(squares / count) };
  }

  capture(): Snapshot {
    return stateOnly({ random: this.random.state(), logits: [...this.logits], norms: { ...this.norms } });
  }

  restore({ state }: Snapshot): void {
    const { random, logits, norms } = state as AlignedState;
    this.random = Random.restore(random);
    this.logits = [...logits];
    this.norms = { ...norms };
  }

  private async measure(batch: Batch): Promise<void> {
    const { size } = this.gradients;
    const [ofTask, ofValidation] = [new Float32Array(size), new Float32Array(size)];
    await this.gradients.ofValidation(ofValidation);
    const rewards: number[] = [];
    for (const task of this.logits.keys()) {
      await this.gradients.ofTask(batch, task, ofTask);
      rewards.push(cosineSimilarity(ofTask, ofValidation));
    }
    const p = softmaxOf(this.logits);
    const mean = rewards.reduce((sum, reward, task) => sum + p[task] * reward, 0);
    const gradient = rewards.map((reward, task) => p[task] * (reward - mean));
    this.logits = this.logits.map((logit, task) => logit + this.options.learningRate * gradient[task]);
    this.norms.squares += gradient.reduce((sum, g) => sum + g * g, 0);
    this.norms.count++;
  }
}

interface AlignedState {
  readonly random: RandomState;
  readonly logits: readonly number[];
  readonly norms: { squares: number; count: number };
}

/** Cosine of two vectors; 0 if one of them is 0. */
export function cosineSimilarity(a: Float32Array, b: Float32Array): number {
  let [ab, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return aa === 0 || bb === 0 ? 0 : ab / Math.sqrt(aa * bb);
}

export const aligned = describeStrategy({
  name: 'aligned',
  summary: "Tasks whose gradients agree with the main task's validation gradient.",
  learns: 'every few updates',
  extraCost: 'K + 1 gradients each time',
  knobs: ['learningRate', 'every'],
  options: optionsSchema,
  create: (options, problem, { random }) => new Aligned(problem, random, options),
});
