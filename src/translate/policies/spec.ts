import { InputError } from '../../errors.js';
import { type Policy, waitK } from '../decode/policy.js';
import { type AdaptiveOptions, adaptive } from './adaptive.js';
import { monotonic } from './monotonic.js';
import { type WaitIfOptions, waitIfDiff, waitIfWorse } from './wait-if.js';

/** What a model was trained to translate with: wait-k, the whole source, or its own decision. */
export type Training = number | 'full' | 'monotonic';

/** A policy by name, with the settings that are not left to their defaults. */
export type PolicySpec =
  | { readonly name: 'wait-k'; readonly k?: number | 'full' }
  | ({ readonly name: 'wait-if-worse' | 'wait-if-diff' } & WaitIfOptions)
  | ({ readonly name: 'adaptive' } & AdaptiveOptions)
  | { readonly name: 'monotonic' };

/**
 * Reads `wait-k:3`, `wait-if-diff:initial=2,step=1`, `adaptive:min=1,max=10,from=1,to=0` or `monotonic`. Settings may
 * be left out, and may be lists, `wait-k:1,3,5` or `wait-if-diff:initial=2,4,step=1,2`, which stand for all combinations.
 */
export function parsePolicies(text: string): PolicySpec[] {
  const [, name, settings] = /^([a-z-]+)(?::(.+))?$/.exec(text.trim()) ?? [];
  const keys = name === undefined ? undefined : SETTINGS.get(name);
  if (keys === undefined) {
    const known = [...SETTINGS.keys()].join(', ');
    throw new InputError(`expected one of ${known} with its settings, found ${JSON.stringify(text)}`, KEY);
  }
  const given = lists(name, keys, settings);
  const count = [...given.values()].reduce((product, { length }) => product * length, 1);
  if (count > MOST) throw new InputError(`it stands for ${count} policies, expected ${MOST} at most`, KEY);
  let specs: Record<string, unknown>[] = [{ name }];
  for (const [key, values] of given) {
    specs = specs.flatMap((spec) => values.map((value) => ({ ...spec, [key]: value })));
  }
  return specs as PolicySpec[];
}

/** The policy over models that were trained so; see `adaptive` for more than one. */
export function createPolicy(spec: PolicySpec, models: readonly Training[]): Policy {
  const [first] = models;
  if ((spec.name === 'monotonic') !== (first === 'monotonic')) {
    const own = first === 'monotonic' ? 'decides itself (monotonic)' : 'has no monotonic attention';
    throw new InputError(`${spec.name} is not for this model: it ${own}`, KEY);
  }
  switch (spec.name) {
    case 'wait-k':
      return waitK(spec.k ?? (first as number | 'full'));
    case 'wait-if-worse':
      return waitIfWorse(spec);
    case 'wait-if-diff':
      return waitIfDiff(spec);
    case 'adaptive': {
      const waits = models.filter((wait) => typeof wait === 'number');
      if (waits.length === models.length) return adaptive(spec, waits);
      throw new InputError('adaptive is for models of wait-k, this one was trained on whole sentences', KEY);
    }
    case 'monotonic':
      return monotonic();
  }
}

/** The policy that a model was trained for. */
export function ownPolicy(models: readonly Training[]): Policy {
  return createPolicy({ name: models[0] === 'monotonic' ? 'monotonic' : 'wait-k' }, models);
}

/** A policy's name as part of a file's: `wait-3`, `wait-if-diff-initial-2-step-1`. */
export function fileNameOf({ name }: Policy): string {
  return name.replace('wait-k:', 'wait-').replaceAll(/[:=,]/g, '-');
}

type Read = (text: string) => number | 'full' | undefined;

/** Longest wait, as in the configuration, and most policies that a text can stand for: who sends it may be anybody. */
const LONGEST = 1000;
const MOST = 1000;

const whole: Read = (text) => (/^[1-9]\d{0,3}$/.test(text) && Number(text) <= LONGEST ? Number(text) : undefined);
const wait: Read = (text) => (text === 'full' ? 'full' : whole(text));
const share: Read = (text) => (/^(0|1|[01]?\.\d+)$/.test(text) && Number(text) <= 1 ? Number(text) : undefined);

/** The settings of each policy and how they are read; that of wait-k may be given without its name. */
const SETTINGS: ReadonlyMap<string, Readonly<Record<string, Read>>> = new Map<string, Readonly<Record<string, Read>>>([
  ['wait-k', { k: wait }],
  ['wait-if-worse', { initial: whole, step: whole }],
  ['wait-if-diff', { initial: whole, step: whole }],
  ['adaptive', { min: whole, max: whole, from: share, to: share }],
  ['monotonic', {}],
]);

const KEY = { key: 'policy' };

/** `a=1,2,b=3` as a ↦ 1, 2 and b ↦ 3. */
function lists(policy: string, keys: Readonly<Record<string, Read>>, text = ''): Map<string, (number | 'full')[]> {
  const found = new Map<string, (number | 'full')[]>();
  let [key] = policy === 'wait-k' ? Object.keys(keys) : [];
  for (const piece of text === '' ? [] : text.split(',')) {
    const [value, name] = piece
      .split('=')
      .map((part) => part.trim())
      .reverse();
    if (name !== undefined) key = name;
    const read = key === undefined ? undefined : Object.hasOwn(keys, key) ? keys[key] : undefined;
    if (read === undefined || (name !== undefined && found.has(name))) {
      const known = Object.keys(keys).join(', ') || 'none';
      throw new InputError(`${JSON.stringify(piece)} is no setting of ${policy}, expected each once of: ${known}`, KEY);
    }
    const number = read(value);
    if (number === undefined) {
      const expected = read === share ? 'a number from 0 to 1' : `a whole number from 1 to ${LONGEST}`;
      throw new InputError(`expected ${expected} for ${key} of ${policy}, found ${JSON.stringify(value)}`, KEY);
    }
    found.set(key, [...(found.get(key) ?? []), number]);
  }
  return found;
}
