import {
  input,
  lower,
  type Parameter,
  Parameters,
  type Program,
  programOf,
  type Run,
  Session,
  type Tensor,
  type TensorType,
  type Value,
} from '../tensor/index.js';
import type { Arena } from './arena.js';

/** A model: a function that declares its parameters while it computes on symbolic inputs. */
export type Model<I extends InputTypes, O extends Outputs = Outputs> = (
  parameters: Parameters,
  inputs: { [K in keyof I]: Tensor },
) => O;

export type InputTypes = Readonly<Record<string, TensorType>>;
export type Outputs = Readonly<Record<string, Tensor>>;
export type Feeds = Readonly<Record<string, Value>>;

/** Traces a model. The program's inputs are the model's, followed by its parameters. */
export function traceModel<I extends InputTypes>(
  model: Model<I>,
  inputTypes: I,
  extend: (outputs: Outputs, parameters: readonly Parameter[]) => Outputs = (outputs) => outputs,
  dtype: 'f32' | 'f64' = 'f32',
): { program: Program; parameters: readonly Parameter[] } {
  const declared = Parameters.root(dtype);
  const inputs = new Map(Object.entries(inputTypes).map(([name, type]) => [name, input(name, type)]));
  const outputs = model(declared, Object.fromEntries(inputs) as { [K in keyof I]: Tensor });
  const parameters = declared.list();
  const all = new Map(inputs);
  for (const { name, tensor } of parameters) {
    if (all.has(name)) throw new RangeError(`'${name}' names both an input and a parameter of the model`);
    all.set(name, tensor);
  }
  return { program: programOf(all, new Map(Object.entries(extend(outputs, parameters)))), parameters };
}

/** The parameters of an arena as inputs of a program; no copies are made. */
export function parameterFeeds(arena: Arena, names: readonly string[] = arena.names): Record<string, Value> {
  return Object.fromEntries(names.map((name) => [name, { data: arena.value(name), shape: arena.shape(name) }]));
}

export interface InferenceConfig<I extends InputTypes> {
  readonly model: Model<I>;
  readonly inputs: I;
  /** Whose parameters to use; it must have all that the model declares. */
  readonly arena: Arena;
  /** Default 1. */
  readonly threads?: number;
}

/** Runs a model forward with the current parameters of an arena. */
export class Inference {
  private constructor(
    private readonly session: Session,
    private readonly parameters: Readonly<Record<string, Value>>,
  ) {}

  static async create<I extends InputTypes>({ model, inputs, arena, threads }: InferenceConfig<I>): Promise<Inference> {
    const { program, parameters } = traceModel(model, inputs, undefined, arena.dtype);
    const feeds = parameterFeeds(
      arena,
      parameters.map(({ name }) => name),
    );
    return new Inference(await Session.create(lower(program), { threads }), feeds);
  }

  run(feeds: Feeds, options?: Run): Promise<Record<string, Value>> {
    return this.session.run({ ...feeds, ...this.parameters }, options);
  }

  close(): Promise<void> {
    return this.session.close();
  }
}
