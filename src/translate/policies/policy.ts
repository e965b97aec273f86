import { InputError } from '../../errors.js';
import { searchDefaults } from '../decode/search.js';
import { special } from '../text/vocabulary.js';

/** READ: take the next source token. WRITE: output the next target token. */
export type Action = 'READ' | 'WRITE';

/** Progress of a sentence. */
export interface Counts {
  /** Source tokens read so far; the end of the sentence counts as one. */
  readonly read: number;
  /** Target tokens written so far. */
  readonly written: number;
  /** The end of the source has been read: there is nothing more to READ. */
  readonly ended: boolean;
}

/** How a model is asked for the next target token. */
export interface View {
  /** Index of the model among those of the policy. Default 0. */
  readonly model?: number;
  /** Source tokens that the model may see. Default all that have been read. */
  readonly read?: number;
  /**
   * m: target position i (from 0) sees the source up to i + m tokens, as in training for wait-m. Default: each position
   * sees what was read when it was written.
   */
  readonly wait?: number;
  /** Re-decode what is written, so that all of it sees the same source. Default: what the model was trained for. */
  readonly redecode?: boolean;
}

/** The attention over the source that a policy looks at: that of some heads of one decoder layer. */
export interface AttentionChoice {
  /** From 1, the lowest. Default two thirds up (the fourth of six, as in Papi et al. 2023). */
  readonly layer?: number;
  /** From 1. Default all of them. */
  readonly heads?: readonly number[];
}

/** What a model would write next. */
export interface Proposal {
  /** The token; the end of the sentence is one, unless ending early is blocked. */
  readonly token: number;
  /** Its log-probability. */
  readonly score: number;
  /** The model itself asks for more of the source first, as monotonic attention may. */
  readonly wantsMore: boolean;
  /** How ready a model with a threshold is to write: the information that it has received, for `itst`. */
  readonly readiness?: number;
  /** Attention of the token over the source tokens that were read, the mean of the heads; for `Policy.attention`. */
  readonly attention?: Float32Array;
}

/** What a policy knows about a sentence. */
export interface PolicyState extends Counts {
  /** The proposals for the views that the policy requested, in their order. */
  readonly proposals: readonly Proposal[];
}

/**
 * Decides what to do next. It must READ before it first WRITEs; once the source has ended only WRITE is left, and it is
 * no longer asked. It stores nothing about a sentence: one policy serves many at once.
 */
export interface Policy {
  /** As `parsePolicies` reads it, with everything that affects the result. */
  readonly name: string;
  /**
   * What it needs to see before it decides. The first view is the one whose token is written, also after the source has
   * ended, with a beam. Default nothing, and writing with model 0.
   */
  look?(counts: Counts): readonly View[];
  /** The attention it needs with every proposal. Default none. */
  readonly attention?: AttentionChoice;
  /** Whether to read a token or to write one. */
  decide(state: PolicyState): Action;
}

/** Models that were trained together with their own policy. */
export type OwnPolicy = 'monotonic' | 'itst' | 'hmt';

/** What a model was trained to translate with: wait-k, the whole source, or its own decision. */
export type TrainedFor = number | 'full' | OwnPolicy;

export function ownDecision(training: TrainedFor | undefined): OwnPolicy | undefined {
  return typeof training === 'number' || training === 'full' ? undefined : training;
}

/** A number that varies a policy. */
export interface PolicySetting {
  /** A whole number from 1 on, such a number or `full`, a number from 0 to 1, or heads as `1+4`. */
  readonly kind: 'whole' | 'wait' | 'share' | 'heads';
  /** Its default; null: the model or the policy decides. */
  readonly default: number | null;
  /** Its slider on the page, starting at 1 or 0. Default none: the page leaves it out. */
  readonly slider?: { readonly label: string; readonly max: number; readonly start: number };
}

export type PolicySettings = Readonly<Record<string, PolicySetting>>;

/** The settings of a policy as options: each may be left out. */
export type OptionsOf<S extends PolicySettings> = {
  readonly [name in keyof S]?: S[name]['kind'] extends 'heads' ? string : number;
};

/** All settings, with defaults for those left out; rejects values of the wrong kind. */
export function complete<S extends PolicySettings>(
  settings: S,
  options: { readonly [name in keyof S]?: number },
): Record<keyof S, number> {
  const values = Object.entries(settings).map(([key, { kind, default: value }]) => {
    const given: number = options[key] ?? value ?? Number.NaN;
    if (kind === 'share' ? !(given >= 0 && given <= 1) : !(Number.isSafeInteger(given) && given >= 1)) {
      const expected = kind === 'share' ? 'a number from 0 to 1' : 'a whole number of at least 1';
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
 * Cases in which a policy can READ without looking at the attention. A full-sentence model takes every prefix for
 * a sentence, so a proposed end means READ; and one that repeats itself would write forever at one place of
 * the source.
 */
export function mustRead(state: PolicyState): boolean {
  const [next] = state.proposals;
  return next?.attention === undefined || next.token === special.eos || wroteTooMuch(state);
}

/** More is written than a translation of what was read can have; a model that repeats itself would continue forever. */
export function wroteTooMuch({ read, written }: PolicyState): boolean {
  const { ratio, extra } = searchDefaults.maxLength;
  return written >= ratio * read + extra;
}

/** The choice as part of a policy's name; empty if nothing was chosen. */
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
 * place in the list of `index.ts` is the order shown to users.
 */
export interface PolicyDescription {
  /** As it is written on the command line. */
  readonly name: string;
  /** In the page's menu. */
  readonly title: string;
  /** In reports: as the paper calls it. */
  readonly label: string;
  /** In reports, by the `problem.attention` of a model, if that matters. Default: the label. */
  readonly labels?: Readonly<Record<string, string>>;
  /**
   * In reports: the keys of a training that make its model early or late, by a short name. Of several keys the first one
   * that is set counts. The models of a policy that has them are points of one curve. Default: all lies in the settings.
   */
  readonly latencyKeys?: Readonly<Record<string, readonly string[]>>;
  /** One line of help. */
  readonly help: string;
  /** In the order in which they are shown. */
  readonly settings: PolicySettings;
  /** The setting whose name may be left out, as in `wait-k:3`. */
  readonly unnamed?: string;
  /** The models it supports, by what they were trained for. */
  readonly models: readonly ('wait-k' | 'full' | OwnPolicy)[];
  /** The policy with these settings over models that were trained so. */
  create(spec: PolicySpec, models: readonly TrainedFor[]): Policy;
}

/** Whether the policy can run a model with this training. */
export function runsOver({ models }: PolicyDescription, training: TrainedFor): boolean {
  return models.includes(typeof training === 'number' ? 'wait-k' : training);
}

/** The policy as text, with its default values. */
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
