import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  averageLagging,
  averageProportion,
  corpusLatency,
  differentiableAverageLagging,
  instanceLatency,
  type Latency,
  parseInstance,
} from '../../src/metrics/latency.js';
import { describeWithShared, readSharedJson } from '../shared.js';

type Figures = Partial<Record<keyof Latency, number | null>>;

interface Sequence {
  id: number;
  kind: string;
  src_len: number;
  delays: number[];
  ref: string | null;
  hyp_len: number;
  ref_len: number | null;
  ATD?: number;
  simuleval_ref?: Figures;
  simuleval_hyp?: Figures;
  stacl?: { AL: number; AP: number; AL_add_eos: number; AP_add_eos: number };
  autosimtrans?: { AL: number; AP: number };
  simuleval102_noeos_ref?: { AL: number; AP: number; DAL: number };
  delays_text_eos_appended?: number[];
  simuleval102_text_eos?: Figures;
  delays_read_src_eos?: number[];
  simuleval102_read_src_eos?: Figures;
}

describeWithShared('latency agrees with the reference tools', () => {
  const sequences = () => readSharedJson<Sequence[]>('vectors/latency/sentences.json');
  const instance = ({ delays, src_len, ref }: Sequence) =>
    parseInstance(JSON.stringify({ delays, source_length: src_len, reference: ref }));
  const expectFigures = (ours: Figures, theirs: Figures, digits: number, label: string) => {
    for (const [name, value] of Object.entries(theirs)) {
      expect(ours[name as keyof Latency], `${label} ${name}`).toBeCloseTo(value!, digits);
    }
  };

  it('with SimulEval against the reference length and against the output length', () => {
    let compared = 0;
    for (const sequence of sequences()) {
      const { id, simuleval_ref, simuleval_hyp } = sequence;
      if (simuleval_ref === undefined || simuleval_hyp === undefined) continue;
      expectFigures(instanceLatency(instance(sequence), 'simuleval')!, simuleval_ref, 9, `${id} simuleval`);
      expectFigures(instanceLatency(instance(sequence), 'stacl')!, simuleval_hyp, 9, `${id} stacl`);
      expectFigures(instanceLatency(instance(sequence))!, { ATD: sequence.ATD }, 9, `${id} ATD`);
      compared++;
    }
    expect(compared).toBe(116);
  });

  it("with SimulEval's count of the reference's words", () => {
    for (const sequence of sequences()) {
      if (sequence.ref_len === null) continue;
      expect(instance(sequence).referenceLength, sequence.kind).toBe(sequence.ref_len);
    }
  });

  it('with the scripts of STACL and AutoSimTrans', () => {
    let compared = 0;
    for (const sequence of sequences()) {
      if (sequence.stacl === undefined || sequence.autosimtrans === undefined) continue;
      const ours = instanceLatency(instance(sequence), 'stacl')!;
      const { AL, AP, AL_add_eos, AP_add_eos } = sequence.stacl;
      expectFigures(ours, { AL, AP }, 9, `${sequence.id} STACL`);
      expectFigures(ours, { AL: sequence.autosimtrans.AL, AP: sequence.autosimtrans.AP }, 9, `${sequence.id} al.py`);
      // Counting the ends of both sentences is scoring the sequence that has them.
      const withEos = { delays: sequence.delays_read_src_eos!, sourceLength: sequence.src_len + 1 };
      expectFigures(instanceLatency(withEos, 'stacl')!, { AL: AL_add_eos, AP: AP_add_eos }, 9, `${sequence.id} EOS`);
      compared++;
    }
    expect(compared).toBe(112);
  });

  it('with SimulEval 1.0.2, which works in single precision', () => {
    let compared = 0;
    for (const sequence of sequences()) {
      const { id, delays, src_len, ref_len, simuleval102_noeos_ref } = sequence;
      const label = `${id} 1.0.2`;
      if (simuleval102_noeos_ref !== undefined && ref_len !== null) {
        const { AL, AP, DAL } = simuleval102_noeos_ref;
        expect(averageProportion(delays, src_len, delays.length), label).toBeCloseTo(AP, 4);
        expect(differentiableAverageLagging(delays, src_len), label).toBeCloseTo(DAL, 4);
        // It stops the ideal translator at the end of the reference; the definition does not.
        if (delays.length <= ref_len) expect(averageLagging(delays, src_len, ref_len), label).toBeCloseTo(AL, 4);
        compared++;
      }
      for (const [shifted, figures] of [
        [sequence.delays_text_eos_appended, sequence.simuleval102_text_eos],
        [sequence.delays_read_src_eos, sequence.simuleval102_read_src_eos],
      ] as const) {
        if (shifted === undefined || figures === undefined) continue;
        expectFigures(instanceLatency({ delays: shifted, sourceLength: src_len + 1 }, 'stacl')!, figures, 4, label);
      }
    }
    expect(compared).toBe(115);
  });

  it('with a run of the simuleval command, whose log it reads', () => {
    const { simuleval_cli_quickstart: run } = readSharedJson<{
      simuleval_cli_quickstart: { instances: object[]; scores: string };
    }>('vectors/latency/stacl_corpus_and_cli.json');
    const ours = corpusLatency(run.instances.map((entry) => parseInstance(JSON.stringify(entry))));
    const [names, values] = run.scores.split('\n').map((line) => line.split('\t'));
    for (const name of ['AL', 'LAAL', 'AP', 'DAL'] as const) {
      expect(ours[name].toFixed(3)).toBe(Number(values[names.indexOf(name)]).toFixed(3));
    }
  });
});

describe('YAAL, ATD and computation-aware latency', () => {
  interface Row {
    readonly delays: number[];
    readonly source_length: number;
    readonly reference_length: number;
    readonly elapsed?: number[];
    readonly [figure: string]: unknown;
  }
  const { rows } = JSON.parse(readFileSync(new URL('../vectors/latency.json', import.meta.url), 'utf8')) as {
    rows: Row[];
  };
  const names = ['AL', 'LAAL', 'AP', 'DAL', 'YAAL', 'ATD'] as const;
  const close = (ours: number | null, theirs: unknown, label: string): void => {
    if (theirs === null) expect(ours, label).toBeNull();
    else expect(ours, label).toBeCloseTo(theirs as number, 9);
  };

  it('are those of OmniSTEval and SimulEval', () => {
    for (const [i, row] of rows.entries()) {
      const instance = parseInstance(JSON.stringify(row));
      const plain = instanceLatency(instance)!;
      close(plain.YAAL, row.YAAL, `${i} YAAL`);
      close(plain.ATD, row.ATD, `${i} ATD`);
      if (row.elapsed === undefined) continue;
      const aware = instanceLatency(instance, 'simuleval', { computationAware: true })!;
      for (const name of names) close(aware[name], row[`${name}_CA`], `${i} ${name} computation-aware`);
    }
    expect(rows.filter(({ YAAL }) => YAAL === null).length).toBeGreaterThan(0);
  });

  it('leave instances that waited for the whole source out of the mean of YAAL', () => {
    // Wait-2 of three words has the lag 2 before the end of the source.
    const two = { delays: [2, 3, 3], sourceLength: 3, referenceLength: 3 };
    const full = { delays: [3, 3, 3], sourceLength: 3, referenceLength: 3 };
    expect(corpusLatency([two, full])).toMatchObject({ YAAL: 2, simultaneous: 1, counted: 2 });
    expect(corpusLatency([full])).toMatchObject({ YAAL: null, simultaneous: 0 });
  });

  it('need elapsed times, one for each delay; zeros, as SimulEval writes them for text, are none', () => {
    const line = { delays: [1, 2], source_length: 2, reference_length: 2 };
    const parsed = (elapsed: unknown) => parseInstance(JSON.stringify({ ...line, elapsed }));
    expect(parsed([0, 0]).elapsed).toBeUndefined();
    expect(() => instanceLatency(parsed([0, 0]), 'simuleval', { computationAware: true })).toThrow('no elapsed times');
    expect(() => parsed([1])).toThrow('elapsed: expected a time for each of the 2 delays, found 1');
    expect(() => parsed([1, 'x'])).toThrow('elapsed[1]: expected numbers from 0');
  });
});

describe('latency', () => {
  it('of wait-k with as many words on both sides is k', () => {
    // g_i = min(i + k − 1, n): every lag up to the first full delay is k; DAL's is k throughout.
    for (const [k, n] of [
      [1, 7],
      [3, 10],
      [9, 9],
    ]) {
      const delays = Array.from({ length: n }, (_, i) => Math.min(i + k, n));
      expect(averageLagging(delays, n, n)).toBeCloseTo(k, 12);
      expect(differentiableAverageLagging(delays, n)).toBeCloseTo(k, 12);
    }
  });

  it('of a full-sentence translation is the source length, and its AP is 1', () => {
    const delays = [6, 6, 6, 6];
    expect(instanceLatency({ delays, sourceLength: 6 }, 'stacl')).toEqual({
      AL: 6,
      LAAL: 6,
      AP: 1,
      DAL: 6,
      // Nothing was written before the end of the source.
      YAAL: null,
      // Words 1 … 4 end at 7, 8, 9, 10, the source words that they are measured against at 1, 2, 3, 4.
      ATD: 6,
    });
  });

  it('skips instances without output and refuses a corpus of nothing else', () => {
    const empty = { delays: [], sourceLength: 5, referenceLength: 4 };
    const full = { delays: [5, 5], sourceLength: 5, referenceLength: 2 };
    expect(instanceLatency(empty)).toBeUndefined();
    expect(corpusLatency([empty, full])).toMatchObject({ AL: 5, counted: 1, skipped: 1 });
    expect(() => corpusLatency([empty])).toThrow('no instance has an output');
  });

  const monotone = fc
    .record({
      sourceLength: fc.integer({ min: 1, max: 40 }),
      steps: fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 40 }),
    })
    .map(({ sourceLength, steps }) => {
      let read = 0;
      return { sourceLength, delays: steps.map((step) => (read = Math.min(sourceLength, read + step))) };
    });

  it('keeps its bounds for monotone delays within the source', () => {
    fc.assert(
      fc.property(monotone, (instance) => {
        const { AP, AL, LAAL, DAL } = instanceLatency(instance, 'stacl')!;
        expect(AP).toBeGreaterThanOrEqual(0);
        expect(AP).toBeLessThanOrEqual(1 + 1e-12);
        expect(LAAL).toBe(AL);
        // A delay never exceeds |x|, and the ideal translator never lags.
        expect(AL).toBeLessThanOrEqual(instance.sourceLength + 1e-9);
        // g' ≥ g term by term.
        const plain = instance.delays.reduce(
          (sum, g, i, { length }) => sum + g - (i * instance.sourceLength) / length,
          0,
        );
        expect(DAL).toBeGreaterThanOrEqual(plain / instance.delays.length - 1e-9);
      }),
    );
  });

  it('does not fall when a word is written later', () => {
    fc.assert(
      fc.property(monotone, fc.nat(), ({ delays, sourceLength }, pick) => {
        const i = pick % delays.length;
        const later = delays.map((delay, j) => (j >= i ? Math.min(sourceLength, delay + 1) : delay));
        const before = instanceLatency({ delays, sourceLength }, 'stacl')!;
        const after = instanceLatency({ delays: later, sourceLength }, 'stacl')!;
        expect(after.AP).toBeGreaterThanOrEqual(before.AP);
        expect(after.DAL).toBeGreaterThanOrEqual(before.DAL - 1e-9);
      }),
    );
  });
});

describe('an instance', () => {
  const where = { file: 'x.jsonl', line: 3 };

  it.each([
    ['', 'x.jsonl:3: expected a JSON object, found an empty line'],
    ['{"delays": [1', 'x.jsonl:3: expected a JSON object, found {"delays": [1'],
    ['[1, 2]', 'x.jsonl:3: expected a JSON object, found [1, 2]'],
    ['{"source_length": 3}', 'x.jsonl:3: delays: expected an array of numbers, found nothing'],
    [
      '{"delays": [1, "two"], "source_length": 3}',
      'x.jsonl:3: delays[1]: expected numbers from 0 to 1000000000000, found "two"',
    ],
    [
      '{"delays": [1, -2], "source_length": 3}',
      'x.jsonl:3: delays[1]: expected numbers from 0 to 1000000000000, found -2',
    ],
    ['{"delays": [1]}', 'x.jsonl:3: source_length: expected a number from 0.001 to 1000000000000, found nothing'],
    [
      '{"delays": [1], "source_length": 2, "reference_length": 0}',
      'x.jsonl:3: reference_length: expected a number from 0.001 to 1000000000000, found 0',
    ],
    ['{"delays": [1], "source_length": 2, "reference": 7}', 'x.jsonl:3: reference: expected text, found 7'],
  ])('is refused with its place: %s', (line, message) => {
    expect(() => parseInstance(line, where)).toThrow(message);
  });

  it('comes back from JSON as it was', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat()),
        fc.integer({ min: 1 }),
        fc.option(fc.integer({ min: 1 }), { nil: undefined }),
        (delays, sourceLength, referenceLength) => {
          const line = JSON.stringify({ delays, source_length: sourceLength, reference_length: referenceLength });
          expect(parseInstance(line)).toEqual({ delays, sourceLength, referenceLength });
        },
      ),
    );
  });

  it('is either read or refused with one sentence, whatever the line', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (line) => {
        try {
          parseInstance(line, where);
        } catch (error) {
          expect(error).toMatchObject({ name: 'InputError', message: expect.stringMatching(/^x\.jsonl:3: /) });
        }
      }),
    );
  });
});
