import type { MaskKey } from '../kernels.js';
import { isFloat, type Value } from './dtype.js';
import { lower } from './lower.js';
import { Session } from './session.js';
import type { Tensor } from './tensor.js';
import { type Program, programOf } from './trace.js';

/** The first operation of a program whose output is not finite although its inputs are. */
export interface NonFinite {
  readonly op: string;
  /** `file:line:column` of the code that asked for the operation. */
  readonly site: string;
  /** NaN or an infinity. */
  readonly value: number;
}

/**
 * Runs the program again with every intermediate value visible and names the first operation whose output is NaN or
 * infinite, or an input that already was. For finding the cause of a loss that went wrong: slow and memory-hungry.
 */
export async function firstNonFinite(
  program: Program,
  feeds: Readonly<Record<string, Value>>,
  dropoutKey?: MaskKey,
): Promise<NonFinite | undefined> {
  for (const [name, { data }] of Object.entries(feeds)) {
    const value = nonFiniteIn(data);
    if (program.inputs.has(name) && value !== undefined) return { op: 'input', site: name, value };
  }
  const tensors = program.nodes.flatMap((node) => node.outputs).filter(({ dtype }) => isFloat(dtype));
  const visible = new Map(tensors.map((tensor, i): [string, Tensor] => [`value.${i}`, tensor]));
  const session = await Session.create(lower(programOf(program.inputs, visible)));
  const values = await session.run(feeds, { dropoutKey });
  await session.close();
  for (const [name, { node }] of visible) {
    const value = nonFiniteIn(values[name].data);
    if (value !== undefined) return { op: node.op.name, site: node.site, value };
  }
  return undefined;
}

function nonFiniteIn(data: Value['data']): number | undefined {
  if (!(data instanceof Float32Array || data instanceof Float64Array)) return undefined;
  return data.find((value) => !Number.isFinite(value));
}
