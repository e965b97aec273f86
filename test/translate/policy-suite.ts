import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { corpusLatency } from '../../src/metrics/index.js';
import { decodeBatch } from '../../src/translate/decode/batch.js';
import type { SearchOptions } from '../../src/translate/decode/search.js';
import { type StreamEvent, TokenStream } from '../../src/translate/decode/stream.js';
import type { TokenModel } from '../../src/translate/decode/token-model.js';
import type { Policy } from '../../src/translate/policies/policy.js';
import { special } from '../../src/translate/text/vocabulary.js';

/** Models that a policy is run over, and the ids of source words that they know: 4 … vocabulary − 1. */
export interface PolicySubject {
  readonly models: readonly TokenModel[];
  readonly vocabulary: number;
  close?(): Promise<void>;
}

export interface PolicySuiteOptions {
  /** Sentences or groups of sentences for each case. Default 20. */
  readonly runs?: number;
}

/** What holds for every policy over every model. */
export function policyCases(
  title: string,
  policy: Policy,
  open: () => PolicySubject | Promise<PolicySubject>,
  { runs = 20 }: PolicySuiteOptions = {},
): void {
  describe(`${policy.name} over ${title}`, () => {
    let subject: PolicySubject;
    beforeAll(async () => {
      subject = await open();
    });
    afterAll(() => subject.close?.());

    const sentences = fc.array(fc.nat(), { maxLength: 11 });
    const settings = fc.record({
      beam: fc.constantFrom(1, 3),
      earlyEnd: fc.constantFrom('allow' as const, 'block' as const),
    });
    const wordsOf = (numbers: readonly number[]): number[] => numbers.map((n) => 4 + (n % (subject.vocabulary - 4)));

    it('never writes before reading, ends, and delays never fall', async () => {
      await fc.assert(
        fc.asyncProperty(sentences, settings, async (numbers, options) => {
          const words = wordsOf(numbers);
          const { events, decoded, done } = await stream(subject.models, policy, words, options);
          expect(done).toBe(true);
          const bound = Math.min(...subject.models.map(({ maxPositions }) => maxPositions)) - 1;
          expect(decoded.tokens.length).toBeLessThanOrEqual(bound);
          if (words.length === 0) {
            expect(events).toEqual([]);
            return;
          }
          expect(events[0]).toEqual({ action: 'READ', token: words[0] });
          const delays = [0, ...decoded.delays];
          for (let i = 1; i < delays.length; i++) expect(delays[i]).toBeGreaterThanOrEqual(Math.max(1, delays[i - 1]));
          expect(delays.at(-1)).toBeLessThanOrEqual(words.length);
          const read = events.filter(({ action }) => action === 'READ').map(({ token }) => token);
          expect(read).toEqual([...words, special.eos].slice(0, read.length));
          if (!decoded.endedEarly) expect(read.at(-1)).toBe(special.eos);
          if (options.earlyEnd === 'block') expect(decoded.endedEarly && decoded.tokens.length < bound).toBe(false);
        }),
        { numRuns: runs, seed: 11 },
      );
    });

    it('gives the same in a stream, however its words come, and in a batch of any size', async () => {
      const cases = fc.record({
        group: fc.array(sentences, { minLength: 1, maxLength: 5 }),
        options: settings,
        batch: fc.constantFrom(1, 2, 64),
        chunk: fc.constantFrom(1, 2, 20),
      });
      await fc.assert(
        fc.asyncProperty(cases, async ({ group, options, batch, chunk }) => {
          const all = group.map(wordsOf);
          const sources = all.map((words) => [...words, special.eos]);
          const together = await decodeBatch(subject.models, sources, policy, { ...options, batch });
          for (const [i, words] of all.entries()) {
            const { decoded, tokens } = await stream(subject.models, policy, words, options, chunk);
            expect(decoded).toEqual(together[i]);
            expect(tokens).toEqual([...decoded.tokens]);
          }
        }),
        { numRuns: Math.ceil(runs / 2), seed: 12 },
      );
    });

    it('writes nothing that depends on source words which it has not read', async () => {
      // Two sources with a common beginning: what comes after it differs in words and in length.
      const future = fc.array(fc.nat(), { minLength: 1, maxLength: 8 });
      const cases = fc.record({ past: sentences, one: future, other: future, options: settings });
      await fc.assert(
        fc.asyncProperty(cases, async ({ past, one, other, options }) => {
          const sources = [one, other].map((rest) => wordsOf([...past, ...rest]));
          const known = past.length;
          const ended = sources.map((words) => [...words, special.eos]);
          const [a, b] = await decodeBatch(subject.models, ended, policy, options);
          const unaware = ({ tokens, delays }: typeof a): number[] => [...tokens].filter((_, i) => delays[i] <= known);
          expect(unaware(a)).toEqual(unaware(b));
          // The same of a stream, and READs as well: all that happens until the first word of the future is read.
          const [c, d] = await Promise.all(
            sources.map((words) => eventsBefore(subject.models, policy, words, known, options)),
          );
          expect(c).toEqual(d);
          expect(c.filter(({ action }) => action === 'WRITE').map(({ token }) => token)).toEqual(unaware(a));
        }),
        { numRuns: runs, seed: 13 },
      );
    });

    it('has the latency that its READs and WRITEs say', async () => {
      await fc.assert(
        fc.asyncProperty(sentences, async (numbers) => {
          const words = wordsOf([...numbers, 0]);
          const { events, decoded } = await stream(subject.models, policy, words, { beam: 1, earlyEnd: 'block' });
          // Words read before each WRITE; the end of the source is none.
          let read = 0;
          const delays = events.flatMap(({ action }) => {
            if (action === 'WRITE') return [Math.min(read, words.length)];
            read++;
            return [];
          });
          expect([...decoded.delays]).toEqual(delays);
          if (delays.length === 0) return;
          const { AP } = corpusLatency([{ delays: decoded.delays, sourceLength: words.length }], 'stacl');
          // Cho and Esipova: Σ g(t) / (|x| |y|).
          expect(AP).toBeCloseTo(delays.reduce((a, b) => a + b) / (words.length * delays.length), 12);
        }),
        { numRuns: runs, seed: 14 },
      );
    });
  });
}

async function stream(
  models: readonly TokenModel[],
  policy: Policy,
  words: readonly number[],
  options: SearchOptions,
  chunk = 1,
) {
  const events: StreamEvent[] = [];
  const own = new TokenStream(models, policy, { ...options, onEvent: (event) => events.push(event) });
  const tokens: number[] = [];
  for (let i = 0; i < words.length; i += chunk) tokens.push(...(await own.push(words.slice(i, i + chunk))));
  tokens.push(...(await own.end()));
  return { tokens, events, decoded: own.decoded, done: own.done };
}

/** What a stream does before it reads the word after the first `known` ones. */
async function eventsBefore(
  models: readonly TokenModel[],
  policy: Policy,
  words: readonly number[],
  known: number,
  options: SearchOptions,
): Promise<StreamEvent[]> {
  const { events } = await stream(models, policy, words, options);
  let read = 0;
  const next = events.findIndex(({ action }) => action === 'READ' && read++ === known);
  return next < 0 ? events : events.slice(0, next);
}
