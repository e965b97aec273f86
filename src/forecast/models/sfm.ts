import { z } from 'zod';
import { linear, ones, torchUniform, xavierUniform, zeros } from '../../nn/index.js';
import {
  add,
  at,
  clip,
  constant,
  expandDims,
  fill,
  type Initializer,
  mul,
  linear as product,
  slice,
  square,
  sum,
  type Tensor,
  tanh,
} from '../../tensor/index.js';
import { networkModel } from './model.js';

/**
 * State frequency memory (Zhang, Aggarwal & Qi 2017). With gates σ̂(x) = clip(0.2 x + 0.5, 0, 1) of [x_t; h_{t−1}]:
 *
 *     f = f_state ⊗ f_frequency ∈ [D, K],   ω_k = 2πk/K
 *     Re S_t = f ∘ Re S_{t−1} + (i ∘ tanh(…)) ⊗ cos(ω t),   Im S_t likewise with sin
 *     a_t = tanh(Σ_k u_k |S_t|²_k + b),   h_t = o ∘ a_t
 */
export const sfmModel = networkModel({
  schema: z.strictObject({
    name: z.literal('sfm').describe('State frequency memory: a recurrence whose state is decomposed by frequency.'),
    hidden: z.int().min(1).default(32).describe('Width D of the state.'),
    frequencies: z.int().min(1).default(8).describe('Frequencies K of the state; time and memory grow with D·K.'),
    output: z.int().min(1).default(32).describe('Width of the projection of the last state.'),
  }),
  title: 'SFM',
  layout: 'time-major',
  trunk(p, { x }, { hidden: D, frequencies: K, output }) {
    const [steps, batch] = x.shape;
    const widths = [D, D, K, D, D]; // i, f_state, f_frequency, candidate, o
    const total = widths.reduce((a, b) => a + b);
    const fromInput = linear(p.under('input'), x, total, { weight: xavierUniform(), biasStart: gateBias(D, K) });
    const recurrent = p.get('recurrent.weight', [total, D], torchUniform(D));
    const mix = p.get('amplitude.weight', [K], torchUniform(K));
    const mixBias = p.get('amplitude.bias', [D], zeros);

    let h: Tensor = fill(0, [batch, D], x.dtype);
    let re: Tensor = fill(0, [batch, D, K], x.dtype);
    let im = re;
    for (let t = 0; t < (steps as number); t++) {
      const gates = add(at(fromInput, 0, t), product(h, recurrent)); // [B, 4D + K]
      const [input, state, frequency, candidate, out] = split(gates, widths);
      const forget = mul(expandDims(gate(state), 2), expandDims(gate(frequency), 1)); // [B, D, K]
      const written = expandDims(mul(gate(input), tanh(candidate)), 2); // [B, D, 1]
      const angles = Array.from({ length: K }, (_, k) => (2 * Math.PI * k * (t + 1)) / K);
      re = add(mul(forget, re), mul(written, constant(angles.map(Math.cos), x.dtype as 'f32')));
      im = add(mul(forget, im), mul(written, constant(angles.map(Math.sin), x.dtype as 'f32')));
      const power = add(square(re), square(im));
      const amplitude = tanh(add(sum(mul(power, mix), { axes: [2] }), mixBias)); // [B, D]
      h = mul(gate(out), amplitude);
    }
    return linear(p.under('projection'), h, output);
  },
});

/** Forget gates start open, as in the original. */
function gateBias(D: number, K: number): Initializer {
  return (values, shape, random) => {
    zeros(values, shape, random);
    ones(values.subarray(D, 2 * D + K) as Float32Array, shape, random);
  };
}

const gate = (x: Tensor): Tensor => clip(add(mul(x, 0.2), 0.5), 0, 1);

function split(x: Tensor, widths: readonly number[]): Tensor[] {
  let start = 0;
  return widths.map((width) => {
    const part = slice(x, 1, start, width);
    start += width;
    return part;
  });
}
