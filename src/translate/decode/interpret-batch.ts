import { type BatchOptions, tooLong } from './batch.js';
import { ask, Interpreter } from './interpreter.js';
import type { Policy } from './policy.js';
import type { Decoded } from './sentence.js';
import type { TokenModel } from './token-model.js';

/**
 * Translates sentences under any policy as if each were read token by token: at each moment all that are under way ask
 * their models together, and one that is done makes room for the next. `sources` are token ids that end with `</s>`; the
 * results are in their order.
 */
export async function interpretBatch(
  models: readonly TokenModel[],
  sources: readonly ArrayLike<number>[],
  policy: Policy,
  { batch = 64, onProgress, ...options }: BatchOptions = {},
): Promise<Decoded[]> {
  const most = Math.min(...models.map(({ maxPositions }) => maxPositions));
  sources.forEach(({ length }, i) => {
    if (length > most) throw tooLong(length, most, i + 1);
  });
  // Sentences of similar length go together.
  const waiting = sources.map((_, i) => i).sort((a, b) => sources[b].length - sources[a].length || b - a);
  const results = new Array<Decoded>(sources.length);
  const begin = (place: number): Running => {
    const interpreter = new Interpreter(models, policy, options);
    for (const token of Array.from(sources[place])) interpreter.hear(token);
    return { place, interpreter };
  };
  let running: Running[] = [];
  let done = 0;
  while (running.length > 0 || waiting.length > 0) {
    while (running.length < batch && waiting.length > 0) running.push(begin(waiting.pop()!));
    await takeTurn(models, running);
    for (const { place, interpreter } of running) {
      if (!interpreter.done) continue;
      results[place] = interpreter.decoded;
      done++;
    }
    running = running.filter(({ interpreter }) => !interpreter.done);
    onProgress?.(done);
  }
  return results;
}

interface Running {
  readonly place: number;
  readonly interpreter: Interpreter;
}

/** Each sentence asks what it has to, and goes on with the answers. */
async function takeTurn(models: readonly TokenModel[], running: readonly Running[]): Promise<void> {
  const turns = running.map(({ interpreter }) => ({ interpreter, asked: interpreter.questions() }));
  const answers = await ask(
    models,
    turns.flatMap(({ asked }) => asked),
  );
  let first = 0;
  for (const { interpreter, asked } of turns) {
    if (asked.length > 0) interpreter.answer(answers.slice(first, first + asked.length));
    first += asked.length;
  }
}
