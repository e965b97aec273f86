import { grad, lower, type Parameter, Session } from '../tensor/index.js';
import type { Arena } from './arena.js';
import { type Feeds, type InputTypes, type Model, type Outputs, parameterFeeds, traceModel } from './inference.js';
import { gradientName } from './replica.js';

export interface GradientsConfig<I extends InputTypes> {
  /** Its output `loss` is differentiated. In evaluation mode: it must not contain dropout. */
  readonly model: Model<I>;
  readonly inputs: I;
  /** At whose parameters; it must have all that the model declares. */
  readonly arena: Arena;
  /** Default 1. */
  readonly threads?: number;
}

/**
 * Gradients of a model at the current parameters of an arena, apart from its training: nothing in the arena is
 * written, and no random number is drawn.
 */
export class Gradients {
  private constructor(
    private readonly arena: Arena,
    private readonly session: Session,
    private readonly names: readonly string[],
  ) {}

  static async create<I extends InputTypes>(config: GradientsConfig<I>): Promise<Gradients> {
    const { model, inputs, arena, threads } = config;
    const { program, parameters } = traceModel(model, inputs, withGradients, arena.dtype);
    const executable = lower(program);
    if (executable.masks.length > 0) throw new RangeError('gradients in evaluation mode need a model without dropout');
    const session = await Session.create(executable, { threads });
    return new Gradients(
      arena,
      session,
      parameters.map(({ name }) => name),
    );
  }

  /** Writes ∇ loss into an array laid out like the arena's values: 0 where the model has no parameter. Returns the loss. */
  async write(feeds: Feeds, out: Float32Array): Promise<number> {
    const { arena, names } = this;
    out.fill(0);
    const into = Object.fromEntries(names.map((name) => [gradientName(name), arena.view(out, name)]));
    const outputs = ['loss', ...Object.keys(into)];
    const { loss } = await this.session.run({ ...feeds, ...parameterFeeds(arena, names) }, { outputs, into });
    return loss.data[0] as number;
  }

  close(): Promise<void> {
    return this.session.close();
  }
}

/** A model's outputs with the gradients of its `loss` beside them. */
export function withGradients(outputs: Outputs, parameters: readonly Parameter[]): Outputs {
  const loss = outputs.loss;
  if (loss === undefined) throw new RangeError("a model to train needs an output named 'loss'");
  const gradients = grad(
    loss,
    parameters.map(({ tensor }) => tensor),
  );
  return { ...outputs, ...Object.fromEntries(parameters.map(({ name }, i) => [gradientName(name), gradients[i]])) };
}
