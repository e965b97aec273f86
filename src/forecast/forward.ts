import type { Inference } from '../optim/index.js';
import type { Value } from '../tensor/index.js';
import type { FeatureSpec, Normaliser, Panel, Samples } from './data/index.js';
import { featuresOf, piecesOf } from './data-set.js';
import { inputValue, type Network } from './network.js';

/** Some samples with their features, ready for a network. */
export interface Inputs {
  readonly samples: Samples;
  readonly positions: Int32Array;
  /** In the layout of the network. */
  readonly x: Float32Array;
}

/** The inputs of a network's programs; `tasks` has the task of each sample, for networks that are told. */
export function inputFeeds(network: Network, inputs: Inputs, tasks: ArrayLike<number>): Record<string, Value> {
  const { samples, positions, x } = inputs;
  const shape = [positions.length];
  const feeds: Record<string, Value> = { x: inputValue(network, x, positions.length) };
  if (network.seesDays) feeds.day = { data: BigInt64Array.from(positions, (i) => BigInt(samples.day[i])), shape };
  if (network.sharing === 'embedding') feeds.task = { data: BigInt64Array.from(Array.from(tasks, BigInt)), shape };
  return feeds;
}

/** Forecasts [B, columns]; of one task for networks that are told the task. */
export async function forward(
  network: Network,
  inference: Inference,
  inputs: Inputs,
  task: number,
): Promise<Float32Array> {
  const tasks = new Int32Array(inputs.positions.length).fill(task);
  const { forecasts } = await inference.run(inputFeeds(network, inputs, tasks));
  return forecasts.data as Float32Array;
}

/** Forecasts of one task for all samples, in their order. */
export async function forecastSamples(
  network: Network,
  inference: Inference,
  data: { readonly cleaned: Panel; readonly features: FeatureSpec; readonly normaliser: Normaliser },
  samples: Samples,
  task: number,
): Promise<Float32Array> {
  const out = new Float32Array(samples.length);
  const { columns } = network;
  const column = columns === 1 ? 0 : task;
  for (const positions of piecesOf(samples, network.seesDays)) {
    const x = featuresOf(data, samples, positions, network.layout);
    const values = await forward(network, inference, { samples, positions, x }, task);
    for (let i = 0; i < positions.length; i++) out[positions[i]] = values[i * columns + column];
  }
  return out;
}
