import { z } from 'zod';
import { linear, ones, torchUniform, xavierUniform, zeros } from '../../nn/index.js';
import {
  add,
  clip,
  constant,
  expandDims,
  fill,
  type Initializer,
  matmul,
  mul,
  linear as product,
  reshape,
  split,
  square,
  sum,
  type Tensor,
  tanh,
  transpose,
  unstack,
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
    const batch = x.shape[1];
    const widths = [D, D, K, D, D]; // i, f_state, f_frequency, candidate, o
    const total = widths.reduce((a, b) => a + b);
    const fromInput = linear(p.under('input'), x, total, { weight: xavierUniform(), biasStart: gateBias(D, K) });
    const recurrent = p.get('recurrent.weight', [total, D], torchUniform(D));
    const mix = p.get('amplitude.weight', [K], torchUniform(K));
    const mixBias = p.get('amplitude.bias', [D], zeros);

    // A row of the state is Re S, then Im S, D·K values each. Products with constant matrices repeat values or add
    // them up; broadcasting along an axis as short as K would take much longer.
    const matrix = (rows: number, columns: number, value: (row: number, column: number) => number): Tensor => {
      const values = Array.from({ length: rows * columns }, (_, i) => value(Math.floor(i / columns), i % columns));
      return constant(values, x.dtype as 'f32', [rows, columns]);
    };
    const repeatState = matrix(D, D * K, (d, place) => Number(Math.floor(place / K) === d));
    const repeatFrequency = matrix(K, D * K, (k, place) => Number(place % K === k));
    const waves = Array.from({ length: K }, (_, t) =>
      matrix(D, 2 * D * K, (d, place) => {
        if (Math.floor((place % (D * K)) / K) !== d) return 0;
        const angle = (2 * Math.PI * (place % K) * (t + 1)) / K;
        return place < D * K ? Math.cos(angle) : Math.sin(angle);
      }),
    );
    const mixed = mul(transpose(repeatState, [1, 0]), matmul(repeatFrequency, expandDims(mix, 1), { transA: true }));

    let h: Tensor = fill(0, [batch, D], x.dtype);
    let s: Tensor = fill(0, [batch, 2, D * K], x.dtype);
    for (const [t, now] of unstack(fromInput, 0).entries()) {
      const gates = add(now, product(h, recurrent)); // [B, 4D + K]
      const [input, state, frequency, candidate, out] = split(gates, 1, widths);
      const forget = mul(matmul(gate(state), repeatState), matmul(gate(frequency), repeatFrequency)); // [B, D·K]
      const written = matmul(mul(gate(input), tanh(candidate)), waves[t % K]);
      s = add(mul(expandDims(forget, 1), s), reshape(written, [batch, 2, D * K]));
      const power = sum(square(s), { axes: [1] });
      const amplitude = tanh(add(matmul(power, mixed), mixBias)); // [B, D]
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
