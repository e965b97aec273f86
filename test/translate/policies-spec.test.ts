import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import {
  createPolicy,
  fileNameOf,
  ownPolicy,
  type PolicySpec,
  parsePolicies,
} from '../../src/translate/policies/index.js';

describe('the text of a policy', () => {
  it('names the policy and its settings', () => {
    expect(parsePolicies('wait-k:3')).toEqual([{ name: 'wait-k', k: 3 }]);
    expect(parsePolicies('wait-k:full')).toEqual([{ name: 'wait-k', k: 'full' }]);
    expect(parsePolicies('wait-k')).toEqual([{ name: 'wait-k' }]);
    expect(parsePolicies(' wait-if-diff:initial=2, step=1 ')).toEqual([{ name: 'wait-if-diff', initial: 2, step: 1 }]);
    expect(parsePolicies('adaptive:min=2,max=8,from=.9,to=0.25')).toEqual([
      { name: 'adaptive', min: 2, max: 8, from: 0.9, to: 0.25 },
    ]);
    expect(parsePolicies('monotonic')).toEqual([{ name: 'monotonic' }]);
    expect(parsePolicies('alignatt:f=3,layer=4,heads=1+8')).toEqual([
      { name: 'alignatt', f: 3, layer: 4, heads: '1+8' },
    ]);
    expect(createPolicy(parsePolicies('edatt:alpha=.3,heads=2')[0], ['full']).name).toBe(
      'edatt:alpha=0.3,lambda=2,heads=2',
    );
  });

  it('stands for all combinations of its lists, the last setting changing first', () => {
    expect(parsePolicies('wait-k:1,3,full')).toEqual([1, 3, 'full'].map((k) => ({ name: 'wait-k', k })));
    expect(parsePolicies('wait-if-worse:initial=2,4,step=1,3')).toEqual(
      [
        [2, 1],
        [2, 3],
        [4, 1],
        [4, 3],
      ].map(([initial, step]) => ({ name: 'wait-if-worse', initial, step })),
    );
  });

  it.each([
    [
      'wait',
      'expected one of wait-k, wait-if-worse, wait-if-diff, adaptive, alignatt, edatt, monotonic, itst, hmt with its settings, found "wait"',
    ],
    ['', 'found ""'],
    ['wait-k:0', 'expected a whole number from 1 to 1000 for k of wait-k, found "0"'],
    ['wait-k:', 'found "wait-k:"'],
    ['wait-k:3,', 'found ""'],
    ['wait-k:m=3', '"m=3" is not a setting of wait-k, expected each at most once: k'],
    ['wait-if-diff:2', '"2" is not a setting of wait-if-diff, expected each at most once: initial, step'],
    ['wait-if-diff:step=1,step=2', '"step=2" is not a setting of wait-if-diff'],
    ['wait-if-diff:toString=1', '"toString=1" is not a setting of wait-if-diff'],
    ['adaptive:from=1.2', 'expected a number from 0 to 1 for from of adaptive, found "1.2"'],
    ['alignatt:heads=1+', 'expected numbers of heads from 1 on, as 1+4 for heads of alignatt, found "1+"'],
    ['adaptive:from=0.2=3', '"from=0.2=3" is not a setting of adaptive'],
    ['monotonic:k=3', '"k=3" is not a setting of monotonic, expected each at most once: none'],
  ])('%j is refused', (text, message) => {
    expect(() => parsePolicies(text)).toThrow(message);
  });

  it('holds no number that could keep a server busy: whole ones end at 1000, shares at 1', () => {
    const number = fc.oneof(
      fc.integer(),
      fc.bigInt().map(String),
      fc.double().map(String),
      fc.constant('9'.repeat(150)),
    );
    const setting = fc.constantFrom(
      ...['wait-k:', 'wait-if-diff:initial=', 'wait-if-diff:step=', 'wait-if-worse:initial=', 'wait-if-worse:step='],
      ...['adaptive:min=', 'adaptive:max=', 'adaptive:from=', 'adaptive:to='],
    );
    fc.assert(
      fc.property(setting, number, (start, value) => {
        const most = /from|to=/.test(start) ? 1 : 1000;
        try {
          const [{ name: _, ...settings }] = parsePolicies(start + value);
          expect(Object.values(settings)[0]).toBeLessThanOrEqual(most);
        } catch (error) {
          expect(error).toBeInstanceOf(InputError);
        }
      }),
    );
    expect(parsePolicies('adaptive:max=1000')).toEqual([{ name: 'adaptive', max: 1000 }]);
    expect(() => parsePolicies('adaptive:max=16000000')).toThrow(
      'expected a whole number from 1 to 1000 for max of adaptive, found "16000000"',
    );
  });

  it('stands for 1000 policies at most', () => {
    const ones = (n: number) => Array.from({ length: n }, () => 1).join();
    expect(parsePolicies(`wait-if-diff:initial=${ones(20)},step=${ones(50)}`)).toHaveLength(1000);
    const many = ['min', 'max', 'from', 'to'].map((key) => `${key}=${ones(20)}`).join();
    expect(() => parsePolicies(`adaptive:${many}`)).toThrow('it expands to 160000 policies, expected at most 1000');
  });

  it('is the name of the policy that it makes', () => {
    const whole = fc.integer({ min: 1, max: 99 });
    const share = fc.integer({ min: 0, max: 100 }).map((n) => n / 100);
    const specs: fc.Arbitrary<PolicySpec> = fc.oneof(
      fc.record({ name: fc.constant('wait-k' as const), k: fc.oneof(whole, fc.constant('full' as const)) }),
      fc.record({ name: fc.constantFrom('wait-if-worse', 'wait-if-diff'), initial: whole, step: whole }),
      fc
        .record({ name: fc.constant('adaptive' as const), min: whole, max: whole, from: share, to: share })
        .filter(({ min, max }) => min <= max),
    );
    fc.assert(
      fc.property(specs, (spec) => {
        expect(parsePolicies(createPolicy(spec, [3]).name)).toEqual([spec]);
      }),
    );
  });
});

describe('a policy that is trained', () => {
  const state = (readiness: number, ended = false) => ({
    ...{ read: 3, written: 2, ended },
    proposals: [{ token: 5, score: -1, wantsMore: false, readiness }],
  });

  it('writes from its threshold on, and whatever comes once the source has ended', () => {
    const itst = createPolicy(parsePolicies('itst:.8')[0], ['itst']);
    expect(itst.name).toBe('itst:delta=0.8');
    expect([0.79, 0.8].map((received) => itst.decide(state(received)))).toEqual(['READ', 'WRITE']);
    const hmt = createPolicy(parsePolicies('hmt')[0], ['hmt']);
    expect([0, 0.49, 0.5].map((p) => hmt.decide(state(p)))).toEqual(['READ', 'READ', 'WRITE']);
    // Before the first moment there is nothing to write, however low the threshold.
    expect(createPolicy(parsePolicies('hmt:0')[0], ['hmt']).decide(state(0))).toBe('READ');
    for (const policy of [itst, hmt]) expect(policy.decide(state(0, true))).toBe('WRITE');
    // Twice as many tokens as were read, and ten, are enough.
    expect(itst.decide({ ...state(1), written: 16 })).toBe('READ');
  });

  it('is for its own models alone', () => {
    expect(() => createPolicy({ name: 'itst' }, [3])).toThrow('itst is not for this model: it has no itst attention');
    expect(() => createPolicy({ name: 'itst' }, ['hmt'])).toThrow('it decides itself (hmt)');
    expect(() => createPolicy({ name: 'wait-k' }, ['itst'])).toThrow('it decides itself (itst)');
    expect([ownPolicy(['itst']).name, ownPolicy(['hmt']).name]).toEqual(['itst:delta=0.7', 'hmt:p=0.5']);
  });
});

describe('a policy', () => {
  it('is by default what the model was trained for', () => {
    expect([ownPolicy([3]).name, ownPolicy(['full']).name, ownPolicy(['monotonic']).name]).toEqual([
      'wait-k:3',
      'wait-k:full',
      'monotonic',
    ]);
    expect(createPolicy({ name: 'wait-k' }, [7, 9]).name).toBe('wait-k:7');
  });

  it('has a name for files', () => {
    const names = ['wait-k:3', 'wait-k:full', 'wait-if-diff:initial=2,step=1', 'adaptive'].map((text) =>
      fileNameOf(createPolicy(parsePolicies(text)[0], [3])),
    );
    expect(names).toEqual([
      'wait-3',
      'wait-full',
      'wait-if-diff-initial-2-step-1',
      'adaptive-min-1-max-10-from-1-to-0',
    ]);
  });

  it('is refused for models that cannot have it', () => {
    expect(() => createPolicy({ name: 'monotonic' }, [3])).toThrow('policy: monotonic is not for this model');
    expect(() => createPolicy({ name: 'wait-k', k: 3 }, ['monotonic'])).toThrow('it decides itself (monotonic)');
    expect(() => createPolicy({ name: 'adaptive' }, ['full'])).toThrow('this one was trained on whole sentences');
  });
});
