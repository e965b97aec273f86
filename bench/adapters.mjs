// Memory of training an imported model, with adapters and without: node bench/adapters.mjs [WIDTH LAYERS VOCABULARY]
// Makes random parameters in the layout of Marian (OPUS-MT's size by default) in a temporary folder, and trains two updates.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeSafetensors } from '../dist/optim/safetensors.js';

const [width = 512, layers = 6, vocabulary = 58_101] = process.argv.slice(2).map(Number);
const ffn = 4 * width;
const root = fileURLToPath(new URL('..', import.meta.url));
const tiny = join(root, 'test/vectors/marian');
const folder = mkdtempSync(join(tmpdir(), 'tcts-adapters-'));

/** A folder as Hugging Face has it: the text of the tiny model, its vocabulary filled up, its tensors in this size. */
function makeMarian(at) {
  mkdirSync(at);
  for (const name of ['source.spm', 'target.spm', 'tokenizer_config.json']) cpSync(join(tiny, name), join(at, name));
  const known = JSON.parse(readFileSync(join(tiny, 'vocab.json'), 'utf8'));
  delete known['<pad>'];
  const count = Object.keys(known).length;
  const more = Array.from({ length: vocabulary - 1 - count }, (_, i) => [`piece${i}`, count + i]);
  const vocab = { ...known, ...Object.fromEntries(more), '<pad>': vocabulary - 1 };
  writeFileSync(join(at, 'vocab.json'), JSON.stringify(vocab));
  const config = JSON.parse(readFileSync(join(tiny, 'config.json'), 'utf8'));
  const [heads, pad] = [width / 64, vocabulary - 1];
  const sizes = {
    ...{ d_model: width, encoder_layers: layers, decoder_layers: layers, vocab_size: vocabulary },
    ...{ encoder_attention_heads: heads, decoder_attention_heads: heads, encoder_ffn_dim: ffn, decoder_ffn_dim: ffn },
    ...{ decoder_vocab_size: vocabulary, pad_token_id: pad, decoder_start_token_id: pad, bad_words_ids: [[pad]] },
  };
  writeFileSync(join(at, 'config.json'), JSON.stringify({ ...config, ...sizes }));
  const tensors = new Map();
  const add = (name, shape, centre = 0) => {
    const data = new Float32Array(shape.reduce((a, b) => a * b));
    for (let i = 0; i < data.length; i++) data[i] = centre + (Math.random() - 0.5) / Math.sqrt(width);
    tensors.set(name, { dtype: 'F32', shape, data });
  };
  const linear = (name, out, size) => {
    add(`${name}.weight`, [out, size]);
    add(`${name}.bias`, [out]);
  };
  const norm = (name) => {
    add(`${name}.weight`, [width], 1);
    add(`${name}.bias`, [width]);
  };
  add('model.shared.weight', [vocabulary, width]);
  add('final_logits_bias', [1, vocabulary]);
  tensors.get('model.shared.weight').data.fill(0, pad * width);
  for (const side of ['encoder', 'decoder']) {
    for (let l = 0; l < layers; l++) {
      const layer = `model.${side}.layers.${l}`;
      for (const attention of side === 'encoder' ? ['self_attn'] : ['self_attn', 'encoder_attn']) {
        for (const part of ['q', 'k', 'v', 'out']) linear(`${layer}.${attention}.${part}_proj`, width, width);
        norm(`${layer}.${attention}_layer_norm`);
      }
      linear(`${layer}.fc1`, ffn, width);
      linear(`${layer}.fc2`, width, ffn);
      norm(`${layer}.final_layer_norm`);
    }
  }
  writeSafetensors(join(at, 'model.safetensors'), tensors);
  return [...tensors.values()].reduce((sum, { data }) => sum + data.length, 0);
}

/** Runs the tool in the folder; its largest memory, in GB. */
function tcts(...args) {
  const peak = "process.on('exit',()=>console.error('peak',process.resourceUsage().maxRSS))";
  const command = [`--import=data:text/javascript,${peak}`, join(root, 'dist/cli/main.js'), ...args];
  const { status, stderr } = spawnSync(process.execPath, command, { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return Number(/peak (\d+)/.exec(stderr)[1]) / 1e6;
}

try {
  const parameters = makeMarian(join(folder, 'marian'));
  const imported = tcts('import', 'hf', 'marian', '--out', 'runs/marian');
  const pairs = { en: 'the dog sees a cat', de: 'der hund sieht ein katze' };
  for (const [language, line] of Object.entries(pairs))
    writeFileSync(join(folder, `text.${language}`), `${line}\n`.repeat(8));
  const languages = ['--source', 'en', '--target', 'de', '--like', 'runs/marian'];
  tcts('prepare', 'translate', ...languages, '--train', 'text', '--valid', 'text', '--out', 'corpus');
  const config = {
    extends: 'runs/marian/start.yaml',
    problem: {
      ...{ kind: 'translation', data: { from: 'corpus', folder: 'corpus' }, waits: 3, main: 3 },
      ...{ model: { encoder: 'unidirectional' }, batch: { tokens: 64 }, learning: { peak: 1e-4, warmup: 1 } },
    },
    ...{ strategy: { name: 'fixed' }, training: { episodes: 1, steps: 2 }, logging: { tensorboard: false } },
  };
  writeFileSync(join(folder, 'further.yaml'), JSON.stringify(config));
  const set = ['--quiet', '--set', 'threads=1'];
  const whole = tcts('train', 'further.yaml', ...set, '--set', 'name=whole');
  const adapters = tcts(
    'train',
    'further.yaml',
    ...set,
    '--set',
    'name=adapters',
    '--set',
    'problem.model.adapters={rank: 8}',
  );
  console.log(`${(parameters / 1e6).toFixed(0)} million parameters, peak memory of the process in GB`);
  console.log(
    `import ${imported.toFixed(2)}, training all of them ${whole.toFixed(2)}, adapters ${adapters.toFixed(2)}`,
  );
} finally {
  rmSync(folder, { recursive: true });
}
