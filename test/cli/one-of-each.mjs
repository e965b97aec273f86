/** One of each kind of thing that can be added, as somebody would write it who has the package: nothing but its public entries. */
import { readFileSync } from 'node:fs';
import { dataFormat, formats, models, Notes, networkModel, syntheticMarket } from 'tcts/forecast';
import { linear } from 'tcts/nn';
import { describeStrategy, knownAnswer, problemKind, registerStrategy, stateOnly, z } from 'tcts/schedule';
import { relu } from 'tcts/tensor';
import { policies } from 'tcts/translate';

registerStrategy(
  describeStrategy({
    name: 'turns',
    summary: 'The tasks in turn.',
    title: 'taking turns',
    extraCost: 'none worth mentioning',
    knobs: ['period'],
    options: z.strictObject({ period: z.int().min(1).default(2).describe('Updates of a turn.') }),
    create({ period }, problem) {
      const K = problem.tasks.length;
      const at = ({ update }) => Math.floor(update / period) % K;
      const rows = (batch, status) => {
        const size = problem.sizeOf(batch);
        return Float32Array.from({ length: size * K }, (_, i) => Number(i % K === at(status)));
      };
      return {
        name: 'turns',
        probabilities: async (batch, status) => rows(batch, status),
        choose: async (batch, status) => {
          const size = problem.sizeOf(batch);
          const tasks = new Int32Array(size).fill(at(status));
          return { kind: 'sampled', tasks, weights: new Float32Array(size).fill(1), entropy: 0 };
        },
        endEpisode: async () => ({}),
        capture: () => stateOnly({}),
        restore: () => {},
      };
    },
  }),
);
policies.push({
  name: 'n-for-one',
  title: 'n for one',
  label: 'N:1',
  help: 'read n tokens for each that is written',
  settings: { n: { kind: 'whole', default: 2, slider: { label: 'n', max: 4, start: 3 } } },
  models: ['wait-k', 'full'],
  create: ({ n = 2 }) => ({
    name: `n-for-one:n=${n}`,
    decide: ({ read, written, ended }) => (!ended && read < Number(n) * (written + 1) ? 'READ' : 'WRITE'),
  }),
});
models.push(
  networkModel({
    schema: z.strictObject({
      name: z.literal('perceptron').describe('One hidden layer.'),
      units: z.int().min(1).default(7).describe('Its width.'),
    }),
    title: 'Perceptron',
    layout: 'flat',
    trunk: (p, { x }, { units }) => relu(linear(p.under('hidden'), x, units)),
  }),
);
formats.push(
  dataFormat({
    schema: z.strictObject({
      format: z.literal('stocks').describe('A file with the number of stocks.'),
      path: z.string().describe('The file.'),
      days: z.int().default(160).describe('Trading days.'),
    }),
    title: 'a number of stocks',
    recognises: (path) => path.endsWith('.stocks'),
    read({ path, days }) {
      const panel = syntheticMarket({ stocks: Number(readFileSync(path, 'utf8')), days, strength: 0.6 });
      return { panel, cleaned: panel, notes: new Notes() };
    },
  }),
);
export default problemKind({
  schema: z.strictObject({
    kind: z.literal('noisy').describe('A problem of my own.'),
    teachers: z.enum(['one', 'two']).default('one'),
  }),
  create: (_, { random }) => knownAnswer(random),
});
