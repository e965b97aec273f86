/** A number that a policy can be varied by. */
export interface Knob {
  readonly name: string;
  readonly label: string;
  readonly min: number;
  readonly max: number;
  readonly step: number;
  readonly start: number;
}

export interface PolicyKind {
  readonly name: string;
  readonly title: string;
  readonly knobs: readonly Knob[];
}

/** A policy with the values of its knobs. */
export interface PolicyChoice {
  readonly kind: string;
  readonly values: Readonly<Record<string, number>>;
}

/** Longest wait that the page offers. */
export const LONGEST = 15;

const whole = (name: string, label: string, max: number, start: number): Knob => ({
  name,
  label,
  min: 1,
  max,
  step: 1,
  start,
});

export const policyKinds: readonly PolicyKind[] = [
  { name: 'wait-k', title: 'wait-k', knobs: [whole('k', 'k', LONGEST, 3)] },
  {
    name: 'wait-if-worse',
    title: 'wait-if-worse',
    knobs: [whole('initial', 'first', 10, 2), whole('step', 'step', 5, 1)],
  },
  {
    name: 'wait-if-diff',
    title: 'wait-if-diff',
    knobs: [whole('initial', 'first', 10, 2), whole('step', 'step', 5, 1)],
  },
  {
    name: 'adaptive',
    title: 'adaptive',
    knobs: [
      whole('min', 'shortest', 10, 1),
      whole('max', 'longest', 12, 10),
      { name: 'from', label: 'ρ first', min: 0, max: 1, step: 0.05, start: 1 },
      { name: 'to', label: 'ρ last', min: 0, max: 1, step: 0.05, start: 0 },
    ],
  },
  { name: 'monotonic', title: 'monotonic attention', knobs: [] },
];

export function kindOf(name: string): PolicyKind {
  return policyKinds.find((kind) => kind.name === name) ?? policyKinds[0];
}

export function startOf(kind: string): PolicyChoice {
  return { kind, values: Object.fromEntries(kindOf(kind).knobs.map(({ name, start }) => [name, start])) };
}

/** The text that the server reads: `wait-k:3`, `wait-if-diff:initial=2,step=1`. */
export function specOf({ kind, values }: PolicyChoice): string {
  if (kind === 'wait-k') return `wait-k:${values.k}`;
  const settings = Object.entries(values).map(([name, value]) => `${name}=${value}`);
  return settings.length === 0 ? kind : `${kind}:${settings.join(',')}`;
}

/** What a model was trained for, or the last of what it can do. */
export function choiceFor({ k, policies }: { k: number | null; policies: readonly string[] }): PolicyChoice {
  if (k === null) return startOf(policies.at(-1) ?? 'wait-k');
  return { kind: 'wait-k', values: { k: Math.min(k, LONGEST) } };
}
