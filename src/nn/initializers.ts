import type { Initializer } from '../tensor/index.js';

export const zeros: Initializer = (values) => values.fill(0);
export const ones: Initializer = (values) => values.fill(1);

export function uniform(low: number, high: number): Initializer {
  return (values, _, random) => random.fillUniform(values, low, high);
}

export function normal(mean: number, std: number): Initializer {
  return (values, _, random) => random.fillNormal(values, mean, std);
}

/** U(±gain·√(6/(fan_in + fan_out))) for a weight [out, in] (Glorot & Bengio 2010); fairseq's linear layers. */
export function xavierUniform(gain = 1): Initializer {
  return (values, shape, random) => {
    const bound = gain * Math.sqrt(6 / (fanIn(shape) + shape[0]));
    random.fillUniform(values, -bound, bound);
  };
}

/** N(0, gain²·2/(fan_in + fan_out)) */
export function xavierNormal(gain = 1): Initializer {
  return (values, shape, random) => {
    random.fillNormal(values, 0, gain * Math.sqrt(2 / (fanIn(shape) + shape[0])));
  };
}

/** U(±1/√fan_in): what `torch.nn.Linear` starts its weight with (kaiming_uniform with a = √5). */
export const torchLinear: Initializer = (values, shape, random) => {
  const bound = 1 / Math.sqrt(fanIn(shape));
  random.fillUniform(values, -bound, bound);
};

/** U(±1/√fan): for biases of `torch.nn.Linear` and all parameters of `torch.nn.GRU` (fan = hidden size). */
export function torchUniform(fan: number): Initializer {
  return uniform(-1 / Math.sqrt(fan), 1 / Math.sqrt(fan));
}

/** N(0, 1/width) with a row of zeros for padding: fairseq's embeddings. */
export function embeddingNormal(padding?: number): Initializer {
  return (values, [, width], random) => {
    random.fillNormal(values, 0, 1 / Math.sqrt(width));
    if (padding !== undefined) values.fill(0, padding * width, (padding + 1) * width);
  };
}

const fanIn = (shape: readonly number[]): number => shape.slice(1).reduce((a, b) => a * b, 1);
