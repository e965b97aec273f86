import { useEffect, useState } from 'preact/hooks';
import { fetchTranslation, type Translation } from './api.js';
import { html } from './html.js';
import { Lane, type LaneSetting } from './lane.js';
import { emptyLane } from './lane-state.js';
import { choiceFor, LONGEST, specOf, startOf } from './policies.js';
import { useSentence } from './use-sentence.js';
import { wordsOf } from './words.js';

export function TranslateTab() {
  const [translation, setTranslation] = useState<Translation>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    fetchTranslation().then(setTranslation, (error: Error) => setFailure(error.message));
  }, []);
  if (failure !== undefined) return html`<p class="card message failed" role="alert">${failure}</p>`;
  if (translation === undefined) return html`<p class="hint">Looking for models …</p>`;
  if (translation.runs.length === 0) return html`<${NoModels} />`;
  return html`<${Stage} translation=${translation} />`;
}

function NoModels() {
  return html`
    <section class="card">
      <h2>No model to translate with yet</h2>
      <p>Train the toy pair, which takes about a minute, and load this page again:</p>
      <pre>tcts train configs/toy.yaml</pre>
    </section>
  `;
}

function Stage({ translation }: { translation: Translation }) {
  const [first] = translation.runs;
  const [text, setText] = useState('');
  const [pace, setPace] = useState(2);
  const [typing, setTyping] = useState(false);
  const [settings, setSettings] = useState<readonly LaneSetting[]>([
    { name: 'a', run: first.id, place: 'server', policy: choiceFor(first) },
  ]);
  const stage = useSentence(settings, pace);
  const examples = translation.runs.find(({ id }) => id === settings[0].run)?.examples ?? [];
  const sentence = text.trim() === '' ? (examples[0] ?? '') : text;

  const play = (line: string) => {
    setText(line);
    setTyping(false);
    stage.play(wordsOf(line));
  };
  const type = (line: string) => {
    setText(line);
    if (typing) stage.follow(line);
  };
  const change = (setting: LaneSetting) => {
    setSettings(settings.map((old) => (old.name === setting.name ? setting : old)));
    stage.changePolicy(setting.name, specOf(setting.policy));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (typing) {
      stage.finish(text);
      setText('');
    } else if (sentence !== '') play(sentence);
  };

  return html`
    <section class="card composer" aria-label="Sentence">
      <label class="sentence">
        Sentence
        <textarea
          rows="2"
          placeholder=${typing ? 'Type: every word is read when a space follows it; Enter ends the sentence.' : sentence || 'Type or paste a sentence.'}
          value=${text}
          onInput=${(event: Event) => type((event.currentTarget as HTMLTextAreaElement).value)}
          onKeyDown=${onKeyDown}
        ></textarea>
      </label>
      <div class="controls">
        ${
          stage.busy
            ? html`<button type="button" class="primary" onClick=${stage.stop}>■ Stop</button>`
            : html`<button type="button" class="primary" disabled=${sentence === ''} onClick=${() => play(sentence)}>
                ▶ ${text.trim() === '' ? 'Play an example' : 'Play'}
              </button>`
        }
        <label class="knob">
          <span>pace <b>${pace}</b> words/s</span>
          <input
            type="range" min="0.5" max="10" step="0.5" value=${pace}
            onInput=${(event: Event) => setPace(Number((event.currentTarget as HTMLInputElement).value))}
          />
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked=${typing}
            onChange=${(event: Event) => {
              stage.stop();
              setText('');
              setTyping((event.currentTarget as HTMLInputElement).checked);
            }}
          />
          translate while I type
        </label>
        ${
          settings.length === 1 &&
          html`<button type="button" disabled=${stage.busy} onClick=${() => setSettings([settings[0], secondSetting(settings[0])])}>
            Compare two settings
          </button>`
        }
      </div>
      ${
        examples.length > 0 &&
        html`<div class="examples" role="group" aria-label="Examples">
          ${examples.map((line) => html`<button type="button" class="chip" onClick=${() => play(line)}>${line}</button>`)}
        </div>`
      }
    </section>
    <div class=${settings.length > 1 ? 'lanes two' : 'lanes'}>
      ${settings.map(
        (setting) => html`<${Lane}
          key=${setting.name}
          setting=${setting}
          state=${stage.states[setting.name] ?? emptyLane}
          translation=${translation}
          busy=${stage.busy}
          onChange=${change}
          onRemove=${settings.length > 1 && setting.name === 'b' && !stage.busy ? () => setSettings([settings[0]]) : undefined}
        />`,
      )}
    </div>
  `;
}

/** Another setting to compare with: the same model, with a longer wait if it waits. */
function secondSetting({ run, place, policy }: LaneSetting): LaneSetting {
  if (policy.kind !== 'wait-k') return { name: 'b', run, place, policy: startOf(policy.kind) };
  return { name: 'b', run, place, policy: { kind: 'wait-k', values: { k: Math.min(LONGEST, policy.values.k + 4) } } };
}
