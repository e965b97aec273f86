import type { PolicyKind } from 'tcts/translate/policies/policy.js';

export type Knob = PolicyKind['knobs'][number];

/** A policy with the values of its knobs. */
export interface PolicyChoice {
  readonly kind: string;
  readonly values: Readonly<Record<string, number>>;
}

/** Every policy, as the server describes them (`offer`). */
export let policyKinds: readonly PolicyKind[] = [];

export function offer(kinds: readonly PolicyKind[]): void {
  policyKinds = kinds;
}

/** Longest wait that the page offers. */
export function longestWait(): number {
  return kindOf('wait-k').knobs[0].max;
}

export function kindOf(name: string): PolicyKind {
  return policyKinds.find((kind) => kind.name === name) ?? policyKinds[0];
}

export function startOf(kind: string): PolicyChoice {
  return { kind, values: Object.fromEntries(kindOf(kind).knobs.map(({ name, start }) => [name, start])) };
}

/** The text that the server reads: `wait-k:3`, `wait-if-diff:initial=2,step=1`. */
export function specOf({ kind, values }: PolicyChoice): string {
  const { unnamed } = kindOf(kind);
  const settings = Object.entries(values).map(([name, value]) => (name === unnamed ? `${value}` : `${name}=${value}`));
  return settings.length === 0 ? kind : `${kind}:${settings.join(',')}`;
}

/** What a model was trained for, or the last of what it can do. */
export function choiceFor({ k, policies }: { k: number | null; policies: readonly string[] }): PolicyChoice {
  if (k === null) return startOf(policies.at(-1) ?? 'wait-k');
  return { kind: 'wait-k', values: { k: Math.min(k, longestWait()) } };
}

/** A choice as settings of a link, and back; undefined if the link has none that is known. */
export function policyToLink(name: string, { kind, values }: PolicyChoice, settings: URLSearchParams): void {
  settings.set(`${name}.policy`, kind);
  for (const [knob, value] of Object.entries(values)) settings.set(`${name}.${knob}`, String(value));
}

export function policyFromLink(name: string, settings: URLSearchParams): PolicyChoice | undefined {
  const kind = policyKinds.find((one) => one.name === settings.get(`${name}.policy`));
  if (kind === undefined) return undefined;
  const values = kind.knobs.map(({ name: knob, min, max, start }) => {
    const value = Number(settings.get(`${name}.${knob}`) ?? start);
    return [knob, Number.isFinite(value) ? Math.min(max, Math.max(min, value)) : start];
  });
  return { kind: kind.name, values: Object.fromEntries(values) };
}
