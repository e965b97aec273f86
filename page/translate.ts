import { useState } from 'preact/hooks';
import { limits } from 'tcts/serve/limits.js';
import { arrivingWords } from 'tcts/translate/text/arriving.js';
import { fetchTranslation, siteFiles, type TranslationOffer, usePolling } from './api.js';
import { html } from './html.js';
import { emptyLane, Lane, type LaneSetting } from './lane.js';
import { readLink, writeLink } from './link.js';
import { choiceFor, longestWait, offer, policyFromLink, policyToLink, specOf, startOf } from './policies.js';
import { useSentence } from './sentence.js';
import { Timeline } from './timeline.js';

export function TranslateTab({ active }: { active: boolean }) {
  const [translation, setTranslation] = useState<TranslationOffer>();
  const [failure, setFailure] = useState<string>();
  // Repeatedly: a newly trained model appears by itself. A static site does not change.
  usePolling(
    active && (siteFiles === undefined || translation === undefined),
    '',
    async () => {
      try {
        const found = await fetchTranslation();
        offer(found.policies);
        setTranslation((before) => (JSON.stringify(before) === JSON.stringify(found) ? before : found));
        setFailure(undefined);
      } catch (error) {
        setFailure((error as Error).message);
      }
    },
    5000,
  );
  return html`
    <p class="intro">
      Watch a model translate a sentence while its words are still arriving: after every word it either waits for more
      (READ) or commits to the next word of the translation (WRITE).
    </p>
    ${
      translation === undefined
        ? failure === undefined
          ? html`<p class="hint">Looking for models …</p>`
          : html`<p class="card message failed" role="alert">${failure}</p>`
        : translation.runs.length === 0
          ? html`<${NoModels} />`
          : html`<${Stage} translation=${translation} />`
    }
  `;
}

function NoModels() {
  return html`
    <section class="card">
      <h2>No model to translate with yet</h2>
      <p>Train the toy pair, which takes about a minute; the model then appears here by itself:</p>
      <pre>tcts train toy</pre>
    </section>
  `;
}

function Stage({ translation }: { translation: TranslationOffer }) {
  const [link] = useState(() => settingsOfLink(translation));
  const [text, setText] = useState(link.text);
  const [pace, setPace] = useState(link.pace);
  const [typing, setTyping] = useState(false);
  const [refusal, setRefusal] = useState<string>();
  const [copied, setCopied] = useState('');
  const [settings, setSettings] = useState<readonly LaneSetting[]>(link.lanes);
  // An export that does not say is read by words.
  const byCharacter = (id: string): boolean => translation.runs.find((run) => run.id === id)?.byCharacter === true;
  const stage = useSentence(settings, pace, byCharacter);
  const unitOf = ({ run }: LaneSetting): Unit => (byCharacter(run) ? 'character' : 'word');
  const units = [...new Set(settings.map(unitOf))];
  const whenRead =
    units.length === 1
      ? `every ${WHEN_READ[units[0]]}`
      : settings.map((setting) => `in ${setting.name.toUpperCase()} every ${WHEN_READ[unitOf(setting)]}`).join(', ');
  const examples = translation.runs.find(({ id }) => id === settings[0].run)?.examples ?? [];
  const sentence = text.trim() === '' ? (examples[0]?.source ?? '') : text;
  const reference = examples.find(({ source }) => source === stage.sentence)?.reference;

  const isRefused = (line: string): boolean => {
    const reason = tooLong(line, units);
    setRefusal(reason);
    return reason !== undefined;
  };
  const play = (line: string) => {
    if (isRefused(line)) return;
    setText(line);
    setTyping(false);
    stage.play(line);
  };
  const type = (event: Event) => {
    const { value: line } = event.currentTarget as HTMLTextAreaElement;
    setText(line);
    // An input method is still at it: what it shows is not what it will be.
    if ((event as InputEvent).isComposing) return;
    const refused = isRefused(line);
    if (!typing) return;
    // Show the translation of the text on the screen, or nothing.
    if (refused) stage.clear();
    else stage.follow(line);
  };
  const share = async () => {
    const url = writeLink({ tab: 'translate', settings: linkOf(text, pace, settings) });
    try {
      await navigator.clipboard.writeText(url);
      setCopied('The link is in the clipboard.');
    } catch {
      // Only pages that are served over TLS, or from this machine, may write there.
      setCopied('The link is in the address bar.');
    }
  };
  const change = (setting: LaneSetting) => {
    setSettings(settings.map((old) => (old.name === setting.name ? setting : old)));
    stage.changePolicy(setting.name, specOf(setting.policy));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Safari ends the composition before the key that ended it.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === OF_INPUT_METHOD) return;
    event.preventDefault();
    if (typing) {
      if (isRefused(text)) return;
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
          placeholder=${typing ? `Type: ${whenRead}; Enter ends the sentence.` : sentence || 'Type or paste a sentence.'}
          value=${text}
          onInput=${type}
          oncompositionend=${type}
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
          <span>pace <b>${pace}</b> ${units.includes('character') ? 'characters/s' : 'words/s'}</span>
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
              stage.clear();
              setText('');
              setRefusal(undefined);
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
        <button type="button" onClick=${share}>Copy link</button>
        <span class="hint" role="status">${copied}</span>
      </div>
      ${refusal !== undefined && html`<p class="message failed" role="alert">${refusal}</p>`}
      ${
        examples.length > 0 &&
        html`<div class="examples" role="group" aria-label="Examples">
          ${examples.map(({ source }) => html`<button type="button" class="chip" onClick=${() => play(source)}>${source}</button>`)}
        </div>`
      }
    </section>
    <${Timeline}
      arrivals=${stage.arrivals}
      lanes=${settings.map(({ name }) => ({ name, events: stage.states[name]?.events ?? [] }))}
    />
    <div class=${settings.length > 1 ? 'lanes two' : 'lanes'}>
      ${settings.map(
        (setting) => html`<${Lane}
          key=${setting.name}
          setting=${setting}
          state=${stage.states[setting.name] ?? emptyLane}
          translation=${translation}
          reference=${reference}
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
  return {
    name: 'b',
    run,
    place,
    policy: { kind: 'wait-k', values: { k: Math.min(longestWait(), policy.values.k + 4) } },
  };
}

/** What a source is read by. */
type Unit = 'character' | 'word';

const WHEN_READ: Readonly<Record<Unit, string>> = {
  character: 'character is read at once',
  word: 'word is read when a space follows it',
};

/** The code of keys that an input method has taken. */
const OF_INPUT_METHOD = 229;

/** Why a text cannot be translated; undefined if it can. */
function tooLong(text: string, units: readonly Unit[]): string | undefined {
  if (text.length > MOST_CHARACTERS) {
    return `A sentence can have ${MOST_CHARACTERS.toLocaleString('en')} characters here; this text has ${text.length.toLocaleString('en')}.`;
  }
  for (const unit of units) {
    const { length } = arrivingWords(text, unit === 'character');
    if (length > limits.sentenceWords) {
      return `A sentence can have ${limits.sentenceWords} ${unit}s here; this text has ${length}.`;
    }
  }
  if (!units.includes('word')) return undefined;
  const long = arrivingWords(text, false)
    .map(({ word }) => word)
    .find((word) => word.length > limits.wordLength);
  return long && `A word can have ${limits.wordLength} characters here; “${long.slice(0, 20)}…” has ${long.length}.`;
}

const MOST_CHARACTERS = 5000;

/** The settings of this tab in a link. */
function linkOf(text: string, pace: number, lanes: readonly LaneSetting[]): URLSearchParams {
  const settings = new URLSearchParams();
  if (text !== '') settings.set('text', text);
  settings.set('pace', String(pace));
  for (const { name, run, place, policy } of lanes) {
    settings.set(`${name}.run`, run);
    if (place !== 'server') settings.set(`${name}.place`, place);
    policyToLink(name, policy, settings);
  }
  return settings;
}

function settingsOfLink({ runs, places }: TranslationOffer): { text: string; pace: number; lanes: LaneSetting[] } {
  const { tab, settings } = readLink();
  const own = tab === 'translate' ? settings : new URLSearchParams();
  const lanes = ['a', 'b'].flatMap((name): LaneSetting[] => {
    const wanted = own.get(`${name}.run`);
    const run = runs.find(({ id }) => id === wanted) ?? (name === 'a' ? runs[0] : undefined);
    if (run === undefined) return [];
    const policy = policyFromLink(name, own);
    const place = places.find((one) => one === own.get(`${name}.place`)) ?? places[0];
    return [
      { name, run: run.id, place, policy: policy && run.policies.includes(policy.kind) ? policy : choiceFor(run) },
    ];
  });
  const pace = Number(own.get('pace') ?? 2);
  return { text: own.get('text') ?? '', pace: pace >= 0.5 && pace <= 10 ? pace : 2, lanes };
}
