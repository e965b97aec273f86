import { z } from 'zod';
import { Random, type RandomState } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import {
  type FeatureGroup,
  type InfluenceAccess,
  type Problem,
  remainingGroups,
  requireAbilities,
  type Status,
} from '../problem.js';
import { joinSnapshots, partOf, stateOnly } from '../snapshots.js';
import { describeStrategy, type EpisodeReport, type SampledChoice, type Strategy } from '../strategy.js';
import { entropyOf, softmaxOf } from './distribution.js';
import { Measurements, slopesOf } from './measurements.js';
import { Evidence, Relevance } from './relevance.js';
import { hiddenWidths, NETWORK, type Scale, SchedulerNetwork, Standardisation } from './scheduler.js';

const optionsSchema = z.strictObject({
  hidden: hiddenWidths.default([32]),
  without: z
    .array(z.string())
    .nullable()
    .default(null)
    .describe('Feature groups hidden from the scheduler; null: those that need a forward pass or reveal the labels.'),
  every: z.int().min(1).default(10).describe('M: updates between two measurements; a quarter of that at the start.'),
  smoothing: z
    .number()
    .min(0)
    .lt(1)
    .default(0.8)
    .describe('Weight of earlier measurements in the validation gradient.'),
  samples: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('Number of samples of the batch to measure; null: as many as the problem suggests.'),
  memory: z.int().min(4).default(32).describe('Number of measurements the scheduler learns from.'),
  entropy: z.number().positive().default(1).describe('β, weight of the entropy: π tends to exp(credit ∕ β).'),
  explore: z
    .number()
    .min(0)
    .max(1)
    .default(0.05)
    .describe('γ: share of the updates that keeps every task in training; 1 is mtl.'),
  learningRate: z.number().positive().default(0.02).describe('η₂ of Adam.'),
  steps: z.int().min(1).default(16).describe('Steps of Adam after a measurement.'),
  shuffle: z
    .boolean()
    .default(false)
    .describe('Control: show the scheduler the features of another sample of the batch.'),
});

export type InfluenceOptions = z.output<typeof optionsSchema>;

/**
 * Beyond the paper: credit for every decision instead of one reward for an episode. Every M updates g is the gradient
 * of the main task on validation data reserved for this, and θ ± u a step of the optimiser along it. To first order
 *
 *     ℓ(xᵢ, yᵢ, T; θ + u) − ℓ(xᵢ, yᵢ, T; θ − u)  =  2 ∇ℓ_iT · u
 *
 * is proportional to how much a training step on (i, T) lowers the main task's validation loss: as in DDS (Wang et al.
 * 2020) and Auto-λ (Liu et al. 2022), with the influence of a sample measured through Adam (Xia et al. 2024), but for
 * all tasks of a sample at once and by two forward passes. Two distributions follow from the credits (`Measurements`):
 *
 *     m_T ∝ exp(w_T · mean advantage of T ∕ β)   the same for all samples
 *     φ maximises E[Σ_T φ_T(I) · credit_iT] + βH   over the features, exactly over T
 *
 * Both act only on evidence (`Evidence`): w_T that task T is better or worse than the others; φ sees each feature to
 * the extent that there is evidence that it shows which task suits a sample (`Relevance`), and its share λ is that of
 * the best feature. Without evidence every batch is drawn with the bits of `mtl`. What tasks are drawn from
 * (`drawnFrom`) leaves out tasks that are worse than useless.
 */
export class Influence<Batch> implements Strategy<Batch> {
  readonly name = 'influence';
  private readonly groups: readonly string[];
  private readonly width: number;
  private readonly access: InfluenceAccess<Batch>;
  private readonly scale: Standardisation;
  private readonly measurements: Measurements;
  private readonly relevance: Relevance;
  /** Evidence that a task is better or worse than the others, for all samples. */
  private readonly advantages: Evidence;
  /** The scale with every feature weighted by its relevance. */
  private weighed: Scale;
  /** The direction of measurement, a decaying sum of gradients. */
  private smoothed: Float32Array;
  /** A gradient, then the shift derived from the smoothed one; allocated by the first measurement. */
  private scratch: Float32Array | undefined;
  private draws: Random;
  private shuffling: Random;
  private replay: Random;
  private learned: Learned;

  private constructor(
    private readonly problem: Problem<Batch>,
    private readonly options: InfluenceOptions,
    private readonly network: SchedulerNetwork,
    random: Random,
  ) {
    const groups = groupsOf(problem, options);
    this.access = requireAbilities(problem, 'influence', 'influence').influence;
    this.groups = groups.map(({ name }) => name);
    this.width = groups.reduce((sum, group) => sum + group.width, 0);
    // What all samples of a batch share cannot be distinguished from the noise of its measurement.
    this.scale = new Standardisation(this.width, true);
    this.measurements = new Measurements(this.width, problem.tasks.length, options.memory);
    this.relevance = new Relevance(this.width, problem.tasks.length);
    this.advantages = new Evidence(problem.tasks.length);
    this.weighed = this.relevance.weigh(this.scale);
    this.smoothed = new Float32Array(this.access.size);
    // Same stream and sampling as mtl, so γ = 1 is bit-identical to it.
    this.draws = random.fork('mtl');
    this.shuffling = random.fork('influence shuffling');
    this.replay = random.fork('influence replay');
    const K = problem.tasks.length;
    this.learned = { marginal: new Array<number>(K).fill(1 / K), measured: 0, hasBegun: false, norms: 0, steps: 0 };
  }

  static async create<Batch>(
    problem: Problem<Batch>,
    random: Random,
    options: z.input<typeof optionsSchema> = {},
    threads = 1,
  ): Promise<Influence<Batch>> {
    const all = optionsSchema.parse(options);
    requireAbilities(problem, 'influence', 'influence');
    const width = groupsOf(problem, all).reduce((sum, group) => sum + group.width, 0);
    const network = await SchedulerNetwork.create(width, problem.tasks.length, random.fork('influence policy'), {
      hidden: all.hidden,
      activation: 'relu',
      optimizer: { name: 'adam' },
      startUniform: true,
      learnsFrom: 'credits',
      threads,
    });
    return new Influence(problem, all, network, random);
  }

  async probabilities(batch: Batch, status: Status): Promise<Float32Array> {
    const features = await this.features(batch, status, Random.restore(this.shuffling.state()));
    return Float32Array.from((await this.distributions(batch, features)).flat());
  }

  async choose(batch: Batch, status: Status): Promise<SampledChoice> {
    const size = this.problem.sizeOf(batch);
    const isMeasured = (status.update - 1) % this.interval === 0;
    const features =
      isMeasured || this.trust > 0 ? await this.features(batch, status, this.shuffling) : new Float32Array();
    if (isMeasured) await this.measure(batch, features);
    const tasks = new Int32Array(size);
    const rows = await this.distributions(batch, features);
    let [entropy, ofRow] = [0, 0];
    for (let i = 0; i < size; i++) {
      tasks[i] = this.draws.categorical(rows[i]);
      if (i === 0 || rows[i] !== rows[i - 1]) ofRow = entropyOf(rows[i]);
      entropy += ofRow;
    }
    return { kind: 'sampled', tasks, weights: new Float32Array(size).fill(1), entropy: entropy / size };
  }

  async endEpisode(): Promise<EpisodeReport> {
    const { norms, steps } = this.learned;
    this.learned = { ...this.learned, norms: 0, steps: 0 };
    return steps === 0 ? {} : { gradNorm: norms / steps };
  }

  capture(): Snapshot {
    const own: InfluenceState = {
      draws: this.draws.state(),
      shuffling: this.shuffling.state(),
      replay: this.replay.state(),
      scale: this.scale.state(),
      learned: structuredClone(this.learned),
    };
    return joinSnapshots({
      [NETWORK]: this.network.capture(),
      measurements: this.measurements.capture(),
      relevance: this.relevance.capture(),
      advantages: this.advantages.capture(),
      smoothed: vectorSnapshot(this.smoothed),
      own: stateOnly(own),
    });
  }

  restore(snapshot: Snapshot): void {
    this.network.restore(partOf(snapshot, NETWORK));
    this.measurements.restore(partOf(snapshot, 'measurements'));
    this.relevance.restore(partOf(snapshot, 'relevance'));
    this.advantages.restore(partOf(snapshot, 'advantages'));
    this.smoothed = (partOf(snapshot, 'smoothed').tensors.get('value')!.data as Float32Array).slice();
    const { draws, shuffling, replay, scale, learned } = partOf(snapshot, 'own').state as InfluenceState;
    this.draws = Random.restore(draws);
    this.shuffling = Random.restore(shuffling);
    this.replay = Random.restore(replay);
    this.scale.load(scale);
    this.weighed = this.relevance.weigh(this.scale);
    this.learned = structuredClone(learned);
  }

  async close(): Promise<void> {
    await this.network.close();
  }

  /** One measurement, and learning from it and the earlier ones. */
  private async measure(batch: Batch, features: Float32Array): Promise<void> {
    const { access, width, learned } = this;
    this.scratch ??= new Float32Array(access.size);
    const gradient = this.scratch;
    await access.gradient(learned.measured % access.pieces, gradient);
    this.smooth(gradient);
    const shift = this.scratch;
    access.shift(this.smoothed, shift);
    learned.measured++;
    const { samples, ...losses } = await access.losses(batch, this.options.samples ?? access.samples, shift);
    const slopes = slopesOf(losses, this.problem.tasks.length);
    const rows = new Float32Array(samples.length * width);
    for (const [i, place] of samples.entries()) {
      rows.set(features.subarray(place * width, (place + 1) * width), i * width);
    }
    this.scale.add(Array.from(samples.keys(), (i) => rows.subarray(i * width, (i + 1) * width)));
    this.measurements.add(rows, slopes);
    await this.learn();
  }

  private smooth(gradient: Float32Array): void {
    const { smoothing } = this.options;
    const { smoothed } = this;
    for (let i = 0; i < gradient.length; i++) smoothed[i] = smoothing * smoothed[i] + (1 - smoothing) * gradient[i];
  }

  private async learn(): Promise<void> {
    const { steps, learningRate, entropy } = this.options;
    const { learned } = this;
    const credit = this.measurements.credit(learned.marginal);
    const { features, credits } = this.measurements.last(credit);
    this.relevance.add(features, credits, this.scale);
    this.weighed = this.relevance.weigh(this.scale);
    this.advantages.add(advantagesOf(credits, credit.means.length));
    const { weights } = this.advantages;
    const average = credit.means.reduce((sum, mean) => sum + mean, 0) / credit.means.length;
    learned.marginal = softmaxOf(credit.means.map((mean, task) => (weights[task] * (mean - average)) / entropy));
    if (this.trust === 0) return;
    // The first time there is more than one measurement to learn from.
    const count = learned.hasBegun ? steps : FIRST * steps;
    learned.hasBegun = true;
    for (let step = 0; step < count; step++) {
      const { features, credits } = this.measurements.draw(MINIBATCH, credit, this.replay);
      learned.norms += await this.network.ascendCredits(features, credits, this.weighed, { entropy, learningRate });
      learned.steps++;
    }
  }

  private async features(batch: Batch, status: Status, shuffling: Random): Promise<Float32Array> {
    const { width } = this;
    const size = this.problem.sizeOf(batch);
    const features = new Float32Array(size * width);
    await this.problem.writeFeatures(batch, status, this.groups, features);
    if (!this.options.shuffle) return features;
    const order = Int32Array.from({ length: size }, (_, i) => i);
    shuffling.shuffle(order);
    const shuffled = new Float32Array(features.length);
    for (const [to, from] of order.entries()) {
      shuffled.set(features.subarray(from * width, (from + 1) * width), to * width);
    }
    return shuffled;
  }

  /** Updates between two measurements now. */
  private get interval(): number {
    const { every } = this.options;
    return this.learned.measured < BEGINNING ? Math.ceil(every / 4) : every;
  }

  /** λ. */
  private get trust(): number {
    return this.relevance.strongest;
  }

  /** λφ + (1 − λ)m for each sample of the batch, and the distribution tasks are drawn from. */
  private async distributions(batch: Batch, features: Float32Array): Promise<number[][]> {
    const { marginal } = this.learned;
    const { trust } = this;
    const size = this.problem.sizeOf(batch);
    if (trust === 0)
      return drawProbabilities(
        Array.from({ length: size }, () => marginal),
        this.options.explore,
      );
    const { probabilities } = await this.network.evaluate(features, this.weighed);
    const K = marginal.length;
    const rows: number[][] = [];
    for (let i = 0, at = 0; i < size; i++) {
      const row: number[] = [];
      for (let task = 0; task < K; task++, at++) row.push(trust * probabilities[at] + (1 - trust) * marginal[task]);
      rows.push(row);
    }
    return drawProbabilities(rows, this.options.explore);
  }
}

/** The mean credit [n, K] of each task less that of all tasks. */
function advantagesOf(credits: Float32Array, K: number): Float32Array {
  const advantages = new Float32Array(K);
  for (let at = 0; at < credits.length; at++) advantages[at % K] += (K * credits[at]) / credits.length;
  const mean = advantages.reduce((a, b) => a + b, 0) / K;
  return advantages.map((advantage) => advantage - mean);
}

/**
 * The distribution that tasks are drawn from, given π for a batch: (1 − γ)π′ + γα. π′ is π without the tasks that are
 * less than 1∕e as likely as the best, which with β = 1 are worse than useless: a rare label of pure noise with large
 * gradients spoils a training. α gives every task its share of the batch, because an untrained head drifts away from
 * the rest and then looks harmful forever; it uses the samples that the task suits best, α_iT ∝ (π_iT ∕ mean of π_T)^(1
 * − γ). With γ = 1 all of it is uniform.
 */
export function drawProbabilities(distributions: readonly (readonly number[])[], explore: number): number[][] {
  const shares = new Array<number>(distributions[0].length).fill(0);
  for (const row of distributions) for (let task = 0; task < row.length; task++) shares[task] += row[task];
  for (let task = 0; task < shares.length; task++) shares[task] /= distributions.length;
  const drawn: number[][] = [];
  for (const [i, row] of distributions.entries()) {
    // Rows are often identical.
    drawn.push(i > 0 && row === distributions[i - 1] ? drawn[i - 1] : drawnFromRow(row, shares, explore));
  }
  return drawn;
}

function drawnFromRow(row: readonly number[], shares: readonly number[], explore: number): number[] {
  let best = row[0];
  for (const p of row) best = Math.max(best, p);
  const [chosen, affinity]: number[][] = [[], []];
  let [ofChosen, ofAffinity] = [0, 0];
  for (let task = 0; task < row.length; task++) {
    chosen.push(row[task] < best / Math.E ? 0 : row[task]);
    affinity.push((row[task] / shares[task]) ** (1 - explore));
    ofChosen += chosen[task];
    ofAffinity += affinity[task];
  }
  for (let task = 0; task < row.length; task++) {
    chosen[task] = (1 - explore) * (chosen[task] / ofChosen) + explore * (affinity[task] / ofAffinity);
  }
  return chosen;
}

function groupsOf<Batch>({ features }: Problem<Batch>, { without }: InfluenceOptions): readonly FeatureGroup[] {
  return remainingGroups(
    features,
    without ?? features.filter(({ costly, outcome }) => costly || outcome).map(({ name }) => name),
  );
}

function vectorSnapshot(data: Float32Array): Snapshot {
  return { tensors: new Map([['value', { dtype: 'F32', shape: [data.length], data }]]), state: null };
}

interface InfluenceState {
  readonly draws: RandomState;
  readonly shuffling: RandomState;
  readonly replay: RandomState;
  readonly scale: ReturnType<Standardisation['state']>;
  readonly learned: Learned;
}

interface Learned {
  /** m. */
  marginal: number[];
  /** Measurements made. */
  measured: number;
  /** Whether φ has learned anything. */
  hasBegun: boolean;
  /** Over the steps of this episode. */
  norms: number;
  steps: number;
}

/** Measurements that are four times as frequent. */
const BEGINNING = 32;
/** Multiple of the usual Adam steps in the first measurement. */
const FIRST = 8;
/** Measured samples in one Adam step. */
const MINIBATCH = 256;

export const influence = describeStrategy({
  name: 'influence',
  summary: 'By the effect of a step on each sample and task on the validation loss.',
  options: optionsSchema,
  learns: 'every few updates',
  sees: 'features',
  extraCost: '[about an eighth](results/scheduling.md#cost); twice the time of a tiny model',
  knobs: ['entropy', 'explore', 'every', 'learningRate'],
  create: (options, problem, { random, threads }) => Influence.create(problem, random, options, threads),
});
