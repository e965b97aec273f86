import { describe, expect, it } from 'vitest';
import { IncrementalModel } from '../../src/translate/decode/incremental-model.js';
import { createStepModel } from '../../src/translate/decode/translator.js';
import { stoppingAttention } from '../../src/translate/monotonic/attention.js';
import { MOVING } from '../../src/translate/monotonic/config.js';
import { monotonic } from '../../src/translate/policies/monotonic.js';
import { waitK } from '../../src/translate/policies/wait-k.js';
import { VOCABULARY } from './decode-models.js';
import { sureArena, tinyMonotonic, wholeMonotonic } from './monotonic-models.js';
import { policyCases } from './policy-suite.js';

const SOURCE = [5, 9, 4, 12, 7, 13, 6, 2];
const PREVIOUS = [2, 6, 11, 8, 15, 4, 9];

describe.each(MOVING)('%s, step by step', (attention) => {
  it.each([6, 12])('reads and writes what the whole model expects where heads are sure (seed %i)', async (seed) => {
    const model = tinyMonotonic(attention);
    const arena = sureArena(model, seed);
    const expected = await wholeMonotonic(model, arena, SOURCE, PREVIOUS);
    expect(expected.delays.at(-1)).toBeGreaterThan(expected.delays[0] + 1);
    const steps = await createStepModel(model, arena, { beam: 3 }, stoppingAttention(model));

    const source = steps.source(1);
    const target = steps.target(1);
    for (const [i, token] of PREVIOUS.entries()) {
      for (;;) {
        if (source.memory.length === 0) await steps.read(source, [SOURCE[0]], [0]);
        const read = source.memory.length;
        const found = await steps.write(target, source.memory, {
          tokens: [[token]],
          lengths: [i],
          visible: [read],
          ended: [read === SOURCE.length],
        });
        if (found.wantsMore![0]) {
          target.truncate(i);
          await steps.read(source, [SOURCE[read]], [read]);
          continue;
        }
        // Each token is read when a head needs it, not before.
        expect(read).toBeCloseTo(expected.delays[i], 3);
        const ranked = expected.scores[i].map((score, id) => ({ score, id })).filter(({ id }) => id > 1);
        ranked.sort((a, b) => b.score - a.score);
        expect([...found.tokens.subarray(0, 6)]).toEqual(ranked.slice(0, 6).map(({ id }) => id));
        for (let c = 0; c < 6; c++) expect(found.scores[c]).toBeCloseTo(ranked[c].score, 3);
        break;
      }
    }
    await steps.close();
  });
});

for (const attention of MOVING) {
  const open = async () => {
    const model = tinyMonotonic(attention);
    const steps = await createStepModel(model, sureArena(model, 6), { beam: 3 }, stoppingAttention(model));
    return { models: [new IncrementalModel(steps)], vocabulary: VOCABULARY, close: () => steps.close() };
  };
  policyCases(attention, monotonic(), open, { runs: 5 });
  if (attention === 'mma-h') policyCases(attention, waitK(2), open, { runs: 5 });
}
