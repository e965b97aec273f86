/**
 * What is measured. To add a case, write its two sides and a row here.
 *
 * A side is a module (see serve.mjs for the contract) or a Python script in peers/ that speaks the same protocol:
 *
 *     { module: './ours/gru.mjs', options: { workers: 2, threads: 1 } }
 *     { script: 'gru.py', args: ['--adam'] }
 *
 * @typedef {{ module: string, options?: object } | { script: string, args?: string[] }} SideSource
 * @typedef {object} Case
 * @property {string} name what the filter matches
 * @property {string} what the row's title
 * @property {SideSource} ours
 * @property {SideSource} peer
 * @property {number} target largest accepted ratio, our best time ÷ the peer's best time
 * @property {number} [memoryTarget] largest accepted ratio of the peak memory; without it memory is not compared
 */

/** Large products fill both cores by themselves; the small steps of a recurrence gain more from half a batch a core. */
const ONE_WORKER = { workers: 1, threads: 2 };
const TWO_WORKERS = { workers: 2, threads: 1 };

/**
 * PyTorch's Transformer, twice: made of its own layers and loss, as its users write it, which the targets are about;
 * and written out by hand for speed, to see how far one can go there.
 */
const transformers = [
  {
    name: 'transformer',
    what: 'Transformer, forward + backward',
    script: 'transformer.py',
    target: 0.95,
    memoryTarget: 1,
  },
  {
    name: 'transformer-adam',
    what: 'Transformer, step with Adam',
    script: 'transformer.py',
    adam: true,
    target: 0.95,
    memoryTarget: 1,
  },
  { name: 'encoder-decoder', what: 'Encoder-decoder 6+6, forward + backward', script: 'encoder_decoder.py', target: 1 },
].flatMap(({ name, what, script, adam = false, target, memoryTarget }) => {
  const module = `./ours/${script.replace('.py', '').replace('_', '-')}.mjs`;
  const ours = { module, options: { ...ONE_WORKER, adam } };
  const flags = adam ? ['--adam'] : [];
  return [
    { name, what, ours, peer: { script, args: ['--modules', ...flags] }, target, memoryTarget },
    {
      name: `${name}-by-hand`,
      what: `${what}; peer by hand`,
      ours,
      peer: { script, args: flags },
      target,
      memoryTarget,
    },
  ];
});

const overhead = (mainLoss, target) => ({
  name: `translate-overhead-${mainLoss}`,
  what: `Translation, update with the learned scheduler (${mainLoss}) against plain wait-3`,
  ours: { module: './ours/translate-overhead.mjs', options: { threads: 2, strategy: 'learned', mainLoss } },
  peer: { module: './ours/translate-overhead.mjs', options: { threads: 2, strategy: 'fixed' } },
  target,
});

/** Ten updates each: `influence` measures once in ten. The bars are those of the strategy's cost. */
const influence = (size, what, target) => ({
  name: `influence-${size}`,
  what: `${what}: 10 updates with influence against mtl`,
  ours: { module: './ours/influence.mjs', options: { size, strategy: 'influence' } },
  peer: { module: './ours/influence.mjs', options: { size, strategy: 'mtl' } },
  target,
});

const incremental = (length, deviation) => ({
  name: `translate-incremental-${length}`,
  what: `Translation, wait-9, ${length} ± ${deviation} tokens: incremental against encoding and decoding again`,
  ours: { module: './ours/translate-decoding.mjs', options: { workers: 2, again: false, length, deviation } },
  peer: { module: './ours/translate-decoding.mjs', options: { workers: 2, again: true, length, deviation } },
  target: 0.111,
});

/** @type {Case[]} */
export const cases = [
  ...transformers,
  {
    name: 'translate-train',
    what: 'Translation 3+3, wait-3, update of 2,044 target tokens',
    ours: { module: './ours/translate-train.mjs', options: TWO_WORKERS }, // as `tcts train` does with its default threads
    peer: { script: 'translate_train.py', args: ['--adam'] },
    target: 0.6,
  },
  overhead('exact', 1.15),
  overhead('estimated', 1.15),
  overhead('cached', 1.04),
  influence('stocks', 'CSI300, GRU 2×32 with heads, batch 800', 1.12),
  influence('translation', 'Multi30k, 3+3 layers, 13 waits, 2,048 tokens', 1.2),
  incremental(14, 4), // as Multi30k's sentences
  incremental(21, 14), // as the talks of tst2013, the paper's English–Vietnamese test data
  incremental(28, 7),
  {
    name: 'gru',
    what: 'GRU 2×32, forward + backward',
    ours: { module: './ours/gru.mjs', options: TWO_WORKERS },
    peer: { script: 'gru.py' },
    target: 0.3,
  },
  {
    name: 'gru-adam',
    what: 'GRU 2×32, step with Adam',
    ours: { module: './ours/gru.mjs', options: { ...TWO_WORKERS, adam: true } },
    peer: { script: 'gru.py', args: ['--adam'] },
    target: 0.3,
  },
  {
    name: 'csi300',
    what: 'Forecaster: batch, GRU 2×32, Adam on 300 stocks × 1,500 days',
    ours: { module: './ours/csi300.mjs', options: TWO_WORKERS },
    peer: { script: 'csi300.py' },
    target: 0.714, // 1.4 × the samples a second
  },
  ...['adam', 'sgd'].map((optimizer) => ({
    name: `kernel-${optimizer}`,
    what: `Kernel ${optimizer}, 10 × 7.5 M parameters, against plain JavaScript`,
    ours: { module: './kernels.mjs', options: { optimizer, loop: 'kernel' } },
    peer: { module: './kernels.mjs', options: { optimizer, loop: 'plain' } },
    target: 0.25,
  })),
];
