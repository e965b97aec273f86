import { InputError } from '../../errors.js';
import type { AttentionChoice, Policy, PolicyState } from '../decode/policy.js';
import { searchDefaults } from '../decode/search.js';
import { special } from '../text/vocabulary.js';

/** Models that were trained together with a policy of their own. */
export type OwnPolicy = 'monotonic' | 'itst' | 'hmt';

/** What a model was trained to translate with: wait-k, the whole source, or its own decision. */
export type TrainedFor = number | 'full' | OwnPolicy;

export function ownDecision(training: TrainedFor | undefined): OwnPolicy | undefined {
  return typeof training === 'number' || training === 'full' ? undefined : training;
}

/** A number that a policy can be varied by. */
export interface PolicySetting {
  /** A whole number from 1 on, such a number or `full`, a number from 0 to 1, or heads as `1+4`. */
  readonly kind: 'whole' | 'wait' | 'share' | 'heads';
  /** Its value if left out; null: the model or the policy says. */
  readonly default: number | null;
  /** The slider that turns it on the page, from 1 or 0 on. Default none: the page leaves it out. */
  readonly slider?: { readonly label: string; readonly max: number; readonly start: number };
}

export type PolicySettings = Readonly<Record<string, PolicySetting>>;

/** The settings of a policy as options: each may be left out. */
export type OptionsOf<S extends PolicySettings> = {
  readonly [name in keyof S]?: S[name]['kind'] extends 'heads' ? string : number;
};

/** All settings, with defaults for those left out; refuses values of the wrong kind. */
export function complete<S extends PolicySettings>(
  settings: S,
  options: { readonly [name in keyof S]?: number },
): Record<keyof S, number> {
  const values = Object.entries(settings).map(([key, { kind, default: value }]) => {
    const given: number = options[key] ?? value ?? Number.NaN;
    if (kind === 'share' ? !(given >= 0 && given <= 1) : !(Number.isSafeInteger(given) && given >= 1)) {
      const expected = kind === 'share' ? 'a number from 0 to 1' : 'a whole number from 1 on';
      throw new InputError(`expected ${expected}, found ${given}`, { key });
    }
    return [key, given];
  });
  return Object.fromEntries(values) as Record<keyof S, number>;
}

/** The settings of policies that look at the attention over the source: whose. */
export const attentionSettings = {
  /** Of the decoder, from 1, the lowest. */
  layer: { kind: 'whole', default: null },
  /** From 1, as `1+4`. */
  heads: { kind: 'heads', default: null },
} satisfies PolicySettings;

export function attentionChoice({ layer, heads }: OptionsOf<typeof attentionSettings>): AttentionChoice {
  if (layer !== undefined) complete({ layer: { kind: 'whole', default: null } }, { layer });
  return { layer, heads: heads?.split('+').map(Number) };
}

/**
 * What a policy that looks at the attention need not look at it for: READ. A full-sentence model takes every beginning for
 * a sentence, so that a proposed end means READ; and one that repeats itself would write on without end at one place of
 * the source.
 */
export function mustRead(state: PolicyState): boolean {
  const [next] = state.proposals;
  return next?.attention === undefined || next.token === special.eos || wroteTooMuch(state);
}

/** More is written than a translation of what was read can have: a model that repeats itself would go on for ever. */
export function wroteTooMuch({ read, written }: PolicyState): boolean {
  const { ratio, extra } = searchDefaults.maxLength;
  return written >= ratio * read + extra;
}

/** The choice as part of a policy's name; empty where nothing was chosen. */
export function attentionSuffix({ layer, heads }: OptionsOf<typeof attentionSettings>): string {
  return `${layer === undefined ? '' : `,layer=${layer}`}${heads === undefined ? '' : `,heads=${heads}`}`;
}

/** A policy by name, with the settings that are not left to their defaults. */
export interface PolicySpec {
  readonly name: string;
  readonly [setting: string]: string | number | undefined;
}

/**
 * Everything about a kind of policy. Command-line help, policy names, the page's menu and report labels read it; its
 * place in the list of `index.ts` is the order in which people see it.
 */
export interface PolicyDescription {
  /** As it is written on the command line. */
  readonly name: string;
  /** In the page's menu. */
  readonly title: string;
  /** In reports: as the paper calls it. */
  readonly label: string;
  /** One line of help. */
  readonly help: string;
  /** In the order in which they are shown. */
  readonly settings: PolicySettings;
  /** The setting whose name may be left out, as in `wait-k:3`. */
  readonly unnamed?: string;
  /** The models that it can run over, by what they were trained for. */
  readonly models: readonly ('wait-k' | 'full' | OwnPolicy)[];
  /** The policy with these settings over models that were trained so. */
  create(spec: PolicySpec, models: readonly TrainedFor[]): Policy;
}

/** Whether the policy can run a model with this training. */
export function runsOver({ models }: PolicyDescription, training: TrainedFor): boolean {
  return models.includes(typeof training === 'number' ? 'wait-k' : training);
}

/** The policy as it is written, with the values that it starts with. */
export function policyExample({ name, settings, unnamed }: PolicyDescription): string {
  const values = Object.entries(settings).flatMap(([key, { default: value, slider }]) => {
    const shown = value ?? slider?.start;
    if (shown === undefined) return [];
    return key === unnamed ? [`${shown}`] : [`${key}=${shown}`];
  });
  return values.length === 0 ? name : `${name}:${values.join(',')}`;
}

/** A policy in a menu: with the sliders that turn its settings. */
export interface PolicyKind {
  readonly name: string;
  readonly title: string;
  readonly help: string;
  readonly unnamed?: string;
  readonly knobs: readonly {
    readonly name: string;
    readonly label: string;
    readonly min: number;
    readonly max: number;
    readonly step: number;
    readonly start: number;
  }[];
}

/** The menu entry of a policy. */
export function policyKind({ name, title, help, unnamed, settings }: PolicyDescription): PolicyKind {
  const knobs = Object.entries(settings).flatMap(([key, { kind, slider }]) =>
    slider === undefined
      ? []
      : [{ name: key, ...slider, ...(kind === 'share' ? { min: 0, step: 0.05 } : { min: 1, step: 1 }) }],
  );
  return { name, title, help, ...(unnamed === undefined ? {} : { unnamed }), knobs };
}
