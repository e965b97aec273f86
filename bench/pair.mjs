import { PEER_WAYS } from './environment.mjs';
import { startSide } from './side.mjs';

const WARM_UP = 3;

/**
 * Measures a case: both sides in their own processes, one step of ours, one of the peer, in turn, so that
 * whatever else happens on the machine happens to both.
 *
 * @param {import('./cases.mjs').Case} benchCase
 * @param {{ repeats: number, python: string | undefined }} options without python only our side of a peer in Python
 */
export async function measurePair({ ours, peer }, { repeats, python }) {
  const sources = peer.script !== undefined && python === undefined ? { ours } : { ours, peer };
  /** @type {Record<string, Awaited<ReturnType<typeof startSide>>>} */
  const sides = {};
  try {
    const way = sources.peer?.script === undefined ? undefined : await fastestWay(sources.peer, python);
    for (const [name, source] of Object.entries(sources)) sides[name] = await startSide(source, python, way);
    const steps = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
    for (let round = -WARM_UP; round < repeats; round++) {
      for (const [name, side] of Object.entries(sides)) {
        const step = await side.run();
        if (round >= 0) steps[name].push(step);
      }
    }
    const results = {};
    for (const [name, side] of Object.entries(sides)) {
      results[name] = { ...summary(steps[name]), memory: await side.memory(), facts: await side.facts() };
    }
    return results;
  } finally {
    await Promise.all(Object.values(sides).map((side) => side.quit()));
  }
}

/** The way of running a peer in which the best of a few steps is fastest: what a tuned peer would use here. */
async function fastestWay(source, python) {
  const tried = [];
  for (const way of PEER_WAYS) {
    const side = await startSide(source, python, way);
    try {
      const steps = [];
      for (let i = 0; i < WARM_UP + 4; i++) steps.push((await side.run()).milliseconds);
      tried.push({ way, best: Math.min(...steps.slice(WARM_UP)) });
    } finally {
      await side.quit();
    }
  }
  return tried.sort((a, b) => a.best - b.best)[0].way;
}

/** @param {{ milliseconds: number, processor: number, loss?: number }[]} steps */
function summary(steps) {
  const milliseconds = steps.map((step) => step.milliseconds);
  const processor = medianOf(steps.map((step) => step.processor));
  return {
    best: Math.min(...milliseconds),
    median: medianOf(milliseconds),
    processor,
    milliseconds,
    loss: steps[0].loss,
  };
}

function medianOf(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
