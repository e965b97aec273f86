// A run whose every number follows from a generator and from the numbers before, for tests that kill, stop and starve it:
//   node drawing-run.mjs FOLDER '{"total": 100, …}'
// It is its own process, so it uses the built library.
import { join } from 'node:path';
import { InputError } from '../../dist/errors.js';
import { acquireLock, isRun, runSession } from '../../dist/run/index.js';

const [folder, json] = process.argv.slice(2);
const {
  total,
  size = 1000,
  everySteps = 2,
  everySeconds = null,
  validateEvery = 7,
  pause = 0,
  takeOver,
} = JSON.parse(json);

const weights = new Float64Array(size).fill(1);
let word = 12345;
const draw = () => {
  word = (Math.imul(word, 1664525) + 1013904223) >>> 0;
  return word / 2 ** 32;
};
const trainee = {
  capture: () => ({ tensors: new Map([['weights', { dtype: 'F64', shape: [size], data: weights }]]), state: { word } }),
  restore: ({ tensors, state }) => {
    weights.set(tensors.get('weights').data);
    word = state.word;
  },
};
const config = {
  seed: 1,
  total,
  saving: { everySteps, everySeconds, keep: 2 },
  earlyStopping: { patience: null, minDelta: 0 },
  logging: { everySteps: 1, tensorboard: true, progressSeconds: 60 },
};

try {
  // As a worker does that assumes the one before it is dead.
  if (takeOver) acquireLock(join(folder, 'run.lock'), { takeOver }).release();
  const loop = async (session) => {
    process.stdout.write(`from ${session.step}\n`);
    for (let step = session.step + 1; step <= total && !session.shouldStop; step++) {
      const i = Math.floor(draw() * size);
      weights[i] = Math.sin(weights[i] * 1.7 + draw());
      if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
      session.log(step, { i, weight: weights[i] });
      if (step % validateEvery === 0) session.best(step, weights[i]);
      await session.maybeSave(step);
    }
  };
  const options = { folder, config, resume: isRun(folder), total };
  const outcome = await runSession(options, trainee, loop, async ({ step, best }, write) => {
    write('result.json', JSON.stringify({ step, best, word }));
  });
  process.stdout.write(`${outcome.state} ${outcome.step}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof InputError ? error.message : error.stack}\n`);
  process.exitCode = 1;
}
