import type { LiveSentence } from 'tcts/serve/live-sentence.js';
import type { BeginSession } from './session.js';

/** A sentence that is translated in the page itself. What that takes is loaded when it is first wanted. */
export const beginInPage: BeginSession = (run, policy, listener) => {
  let stopped = false;
  const fail = (error: unknown) => {
    if (!stopped) listener.onError(error instanceof Error ? error.message : String(error));
  };
  const sentence = import('./page-model.js').then(async ({ openInPage, LiveSentence }) => {
    const model = await openInPage(run);
    return { model, live: new LiveSentence(model, model.policy(policy), { ...listener, onError: fail }) };
  });
  sentence.catch(fail);
  const later = (step: (live: LiveSentence) => void) => {
    sentence.then(({ live }) => step(live)).catch(fail);
  };
  return {
    ready: sentence.then(
      () => undefined,
      () => undefined,
    ),
    push: (word) => later((live) => live.push(word)),
    end: () => later((live) => live.end()),
    changePolicy: (spec) => {
      sentence.then(({ live, model }) => live.change(model.policy(spec))).catch(fail);
    },
    stop: () => {
      stopped = true;
      later((live) => live.close());
    },
  };
};
