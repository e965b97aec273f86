import type { Translation } from './api.js';
import { figure } from './figure.js';
import { html } from './html.js';
import type { LaneState } from './lane-state.js';
import { choiceFor, type Knob, kindOf, type PolicyChoice, policyKinds, startOf } from './policies.js';
import { Staircase } from './staircase.js';
import { Timeline } from './timeline.js';

/** What a lane translates with. */
export interface LaneSetting {
  readonly name: string;
  readonly run: string;
  /** Where the model runs. */
  readonly place: 'server' | 'page';
  readonly policy: PolicyChoice;
}

export interface LaneProps {
  readonly setting: LaneSetting;
  readonly state: LaneState;
  readonly translation: Translation;
  /** While a sentence is under way, the policy can change and the model cannot. */
  readonly busy: boolean;
  readonly onChange: (setting: LaneSetting) => void;
  readonly onRemove?: () => void;
}

export function Lane({ setting, state, translation, busy, onChange, onRemove }: LaneProps) {
  const last = state.events.at(-1);
  const title = `Setting ${setting.name.toUpperCase()}`;
  return html`
    <section class="card lane" aria-label=${title}>
      <div class="lane-head">
        <h2>${title}</h2>
        ${onRemove && html`<button type="button" class="quiet" onClick=${onRemove}>Remove</button>`}
      </div>
      <${Settings} ...${{ setting, translation, busy, onChange }} />
      <p class="output" aria-live="polite" lang=${runOf(translation, setting.run)?.target}>
        ${state.text === '' ? html`<span class="hint">${HINTS[state.phase]}</span>` : state.text}
      </p>
      ${state.message && html`<p class=${state.phase === 'failed' ? 'message failed' : 'message'} role="status">${state.message}</p>`}
      <${Timeline} events=${state.events} />
      <div class="measures">
        <${Staircase} events=${state.events} />
        <dl>
          <div><dt>read</dt><dd>${last?.read ?? 0}</dd></div>
          <div><dt>written</dt><dd>${last?.written ?? 0}</dd></div>
          <div title="Average lagging: tokens behind an ideal translator"><dt>AL</dt><dd>${figure(last?.AL)}</dd></div>
          <div title="Average proportion of the source that was read"><dt>AP</dt><dd>${figure(last?.AP)}</dd></div>
        </dl>
      </div>
    </section>
  `;
}

const HINTS: Readonly<Record<LaneState['phase'], string>> = {
  idle: 'The translation appears here.',
  opening: 'Opening the model …',
  running: 'Reading …',
  done: 'Nothing was written.',
  failed: '',
};

function runOf({ runs }: Translation, id: string) {
  return runs.find((run) => run.id === id);
}

function Settings({ setting, translation, busy, onChange }: Omit<LaneProps, 'state' | 'onRemove'>) {
  const { policy } = setting;
  const offered = runOf(translation, setting.run)?.policies ?? [];
  const setRun = (id: string) => {
    const run = runOf(translation, id);
    if (run !== undefined) set({ run: id, policy: run.policies.includes(policy.kind) ? policy : choiceFor(run) });
  };
  const set = (change: Partial<LaneSetting>) => onChange({ ...setting, ...change });
  const choose = (event: Event) => (event.currentTarget as HTMLSelectElement).value;
  return html`
    <div class="settings">
      <label>
        Model
        <select disabled=${busy} value=${setting.run} onChange=${(event: Event) => setRun(choose(event))}>
          ${translation.runs.map(({ id, source, target }) => html`<option value=${id}>${`${id} (${source} → ${target})`}</option>`)}
        </select>
      </label>
      ${
        translation.browser &&
        html`<label>
          Runs in
          <select
            disabled=${busy}
            value=${setting.place}
            onChange=${(event: Event) => set({ place: choose(event) as LaneSetting['place'] })}
          >
            <option value="server">the server</option>
            <option value="page">this page</option>
          </select>
        </label>`
      }
      <label>
        Policy
        <select value=${policy.kind} onChange=${(event: Event) => set({ policy: startOf(choose(event)) })}>
          ${policyKinds.filter(({ name }) => offered.includes(name)).map(({ name, title }) => html`<option value=${name}>${title}</option>`)}
        </select>
      </label>
      ${kindOf(policy.kind).knobs.map(
        (knob) => html`<${KnobInput}
          knob=${knob}
          value=${policy.values[knob.name]}
          onChange=${(value: number) => set({ policy: { ...policy, values: { ...policy.values, [knob.name]: value } } })}
        />`,
      )}
    </div>
  `;
}

function KnobInput({ knob, value, onChange }: { knob: Knob; value: number; onChange: (value: number) => void }) {
  const { label, min, max, step } = knob;
  return html`
    <label class="knob">
      <span>${label} = <b>${value}</b></span>
      <input
        type="range"
        ...${{ min, max, step, value }}
        onInput=${(event: Event) => onChange(Number((event.currentTarget as HTMLInputElement).value))}
      />
    </label>
  `;
}
