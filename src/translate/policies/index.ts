import { InputError } from '../../errors.js';
import { adaptivePolicy } from './adaptive.js';
import { alignAttPolicy } from './alignatt.js';
import { edAttPolicy } from './edatt.js';
import { hmtPolicy } from './hmt.js';
import { itstPolicy } from './itst.js';
import { monotonicPolicy } from './monotonic.js';
import {
  ownDecision,
  type Policy,
  type PolicyDescription,
  type PolicySetting,
  type PolicySpec,
  type TrainedFor,
} from './policy.js';
import { waitIfDiffPolicy, waitIfWorsePolicy } from './wait-if.js';
import { waitKPolicy } from './wait-k.js';

export { type AdaptiveOptions, adaptive } from './adaptive.js';
export { type AlignAttOptions, alignAtt } from './alignatt.js';
export { type EdAttOptions, edAtt } from './edatt.js';
export { type HmtOptions, hmt } from './hmt.js';
export { type ItstOptions, itst } from './itst.js';
export { monotonic } from './monotonic.js';
export {
  type OwnPolicy,
  type PolicyDescription,
  type PolicyKind,
  type PolicySetting,
  type PolicySpec,
  policyExample,
  policyKind,
  runsOver,
  type TrainedFor,
} from './policy.js';
export { type WaitIfOptions, waitIfDiff, waitIfWorse } from './wait-if.js';
export { waitK } from './wait-k.js';

/** Every policy, in the order shown to users. Append your own at the end. */
export const policies: PolicyDescription[] = [
  waitKPolicy,
  waitIfWorsePolicy,
  waitIfDiffPolicy,
  adaptivePolicy,
  alignAttPolicy,
  edAttPolicy,
  monotonicPolicy,
  itstPolicy,
  hmtPolicy,
];

/** The description of a policy; undefined if there is none of this name. */
export function policyNamed(name: string): PolicyDescription | undefined {
  return policies.find((policy) => policy.name === name);
}

/** Names in reports of models that learned when to read, by `problem.attention`. */
export function attentionLabel(attention: string): string {
  const named = policies.find(({ labels = {} }) => attention in labels);
  return named?.labels?.[attention] ?? policyNamed(attention)?.label ?? attention;
}

/**
 * Reads `wait-k:3`, `wait-if-diff:initial=2,step=1`, `adaptive:min=1,max=10,from=1,to=0` or `monotonic`. Settings may
 * be omitted, and may be lists, `wait-k:1,3,5` or `wait-if-diff:initial=2,4,step=1,2`, which stand for all combinations.
 */
export function parsePolicies(text: string): PolicySpec[] {
  const [, name, settings] = /^([a-z-]+)(?::(.+))?$/.exec(text.trim()) ?? [];
  const policy = name === undefined ? undefined : policyNamed(name);
  if (policy === undefined) throw unknown(text);
  const given = lists(policy, settings);
  const count = [...given.values()].reduce((product, { length }) => product * length, 1);
  if (count > MOST) throw new InputError(`it expands to ${count} policies, expected at most ${MOST}`, KEY);
  let specs: Record<string, unknown>[] = [{ name: policy.name }];
  for (const [key, values] of given) {
    specs = specs.flatMap((spec) => values.map((value) => ({ ...spec, [key]: value })));
  }
  return specs as unknown as PolicySpec[];
}

/** The policy over models that were trained so; see `adaptive` for more than one. */
export function createPolicy(spec: PolicySpec, models: readonly TrainedFor[]): Policy {
  const policy = policyNamed(spec.name);
  if (policy === undefined) throw unknown(spec.name);
  const [first] = models;
  const own = ownDecision(first);
  const expected = policy.models.find((model) => model !== 'wait-k' && model !== 'full');
  if (own === undefined ? expected !== undefined : !policy.models.includes(own)) {
    const why = own === undefined ? `has no ${expected} attention` : `decides itself (${own})`;
    throw new InputError(`${spec.name} is not for this model: it ${why}`, KEY);
  }
  return policy.create(spec, models);
}

/** The policy that a model was trained for. */
export function ownPolicy(models: readonly TrainedFor[]): Policy {
  return createPolicy({ name: ownDecision(models[0]) ?? waitKPolicy.name }, models);
}

/** A policy's name as part of a file's: `wait-3`, `wait-if-diff-initial-2-step-1`. */
export function fileNameOf({ name }: Policy): string {
  return name.replace(`${waitKPolicy.name}:`, 'wait-').replaceAll(/[:=,]/g, '-');
}

/** Longest wait, as in the configuration, and maximum number of policies in a text, which may come from anyone. */
const LONGEST = 1000;
const MOST = 1000;

/** A parsed value; undefined if it is not of the kind. */
const READ: Readonly<Record<PolicySetting['kind'], (text: string) => number | string | undefined>> = {
  whole: (text) => (/^[1-9]\d{0,3}$/.test(text) && Number(text) <= LONGEST ? Number(text) : undefined),
  wait: (text) => (text === 'full' ? 'full' : READ.whole(text)),
  share: (text) => (/^(0|1|[01]?\.\d+)$/.test(text) && Number(text) <= 1 ? Number(text) : undefined),
  heads: (text) => (/^[1-9]\d{0,2}(\+[1-9]\d{0,2}){0,63}$/.test(text) ? text : undefined),
};

const EXPECTED: Readonly<Record<PolicySetting['kind'], string>> = {
  whole: `a whole number from 1 to ${LONGEST}`,
  wait: `a whole number from 1 to ${LONGEST}`,
  share: 'a number from 0 to 1',
  heads: 'numbers of heads from 1 on, as 1+4',
};

const KEY = { key: 'policy' };

function unknown(text: string): InputError {
  const known = policies.map(({ name }) => name).join(', ');
  return new InputError(`expected one of ${known} with its settings, found ${JSON.stringify(text)}`, KEY);
}

/** `a=1,2,b=3` as a ↦ 1, 2 and b ↦ 3. */
function lists({ name: policy, settings, unnamed }: PolicyDescription, text = ''): Map<string, (number | string)[]> {
  const found = new Map<string, (number | string)[]>();
  let key = unnamed;
  for (const piece of text === '' ? [] : text.split(',')) {
    const [value, name] = piece
      .split('=')
      .map((part) => part.trim())
      .reverse();
    if (name !== undefined) key = name;
    const setting = key !== undefined && Object.hasOwn(settings, key) ? settings[key] : undefined;
    if (key === undefined || setting === undefined || (name !== undefined && found.has(name))) {
      const known = Object.keys(settings).join(', ') || 'none';
      throw new InputError(
        `${JSON.stringify(piece)} is not a setting of ${policy}, expected each at most once: ${known}`,
        KEY,
      );
    }
    const number = READ[setting.kind](value);
    if (number === undefined) {
      throw new InputError(
        `expected ${EXPECTED[setting.kind]} for ${key} of ${policy}, found ${JSON.stringify(value)}`,
        KEY,
      );
    }
    found.set(key, [...(found.get(key) ?? []), number]);
  }
  return found;
}

/** The policies that `--k` and `--policy` name together; undefined if neither is given. */
export function policyTexts(flags: {
  readonly k?: readonly number[];
  readonly policy?: readonly string[];
}): string[] | undefined {
  const { k, policy } = flags;
  if (k === undefined && policy === undefined) return undefined;
  return [...(k === undefined ? [] : [`${waitKPolicy.name}:${k.join(',')}`]), ...(policy ?? [])];
}
