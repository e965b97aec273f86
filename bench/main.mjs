/**
 * The bench: our time against that of a tuned peer, step by step in turn, best of N.
 *
 *     npm run build && node bench/main.mjs [filter] [--repeats N] [--json FILE]
 *     npm run build && node bench/main.mjs device [toy | Multi30k | CSI300]
 *
 * `filter` is a part of a case's name (cases.mjs). Exit code 1 if a case could not be measured; a missed target is a
 * "no" in the table. Contract of a side: serve.mjs; of a peer in Python: peers/protocol.py.
 */

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { cases } from './cases.mjs';
import { findPython, machine } from './environment.mjs';
import { measurePair } from './pair.mjs';
import { formatTable, rowsOf } from './table.mjs';

if (process.argv[2] === 'device') {
  process.argv.splice(2, 1);
  await import('./device.mjs');
  process.exit();
}

const { filter, repeats, json } = commandLine();
const chosen = cases.filter(({ name }) => name.includes(filter));
if (chosen.length === 0) refuse(`no case is called like "${filter}": ${cases.map(({ name }) => name).join(', ')}`);

const needsPython = chosen.some(({ peer }) => peer.script !== undefined);
const python = needsPython ? findPython() : undefined;
const facts = machine();
if (needsPython && python === undefined) {
  console.log('No Python with PyTorch was found (Debian: apt install python3-torch libopenblas0-openmp): ours alone.');
}
if (facts.load > 0.5)
  console.log(`The machine is not idle (load ${facts.load}): times will be too high and ratios unsure.`);

const results = [];
const rows = [];
for (const benchCase of chosen) {
  process.stderr.write(`${benchCase.name} …\n`);
  try {
    const measured = await measurePair(benchCase, { repeats, python });
    Object.assign(facts, torchFacts(measured.peer));
    results.push({ name: benchCase.name, ...measured, rows: rowsOf(benchCase, measured) });
    rows.push(...results.at(-1).rows);
  } catch (error) {
    console.error(`${benchCase.name} could not be measured: ${error.message}`);
    process.exitCode = 1;
  }
}

console.log(`\n${formatTable(rows)}\n`);
console.log(
  `ratio = ours ÷ peer; best and median of ${repeats} steps each, in turn; processor: the same of the median time of all cores`,
);
console.log(
  Object.entries(facts)
    .map(([name, value]) => `${name} ${value}`)
    .join(', '),
);
if (facts.blas === 'reference') {
  console.log(
    'The ratios against PyTorch mean nothing: it runs on the reference BLAS, 60 times slower than a real one ' +
      '(Debian: apt install libopenblas0-openmp).',
  );
}
if (json !== undefined)
  writeFileSync(json, `${JSON.stringify({ machine: facts, repeats, cases: results }, null, 2)}\n`);

function commandLine() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { repeats: { type: 'string', default: '15' }, json: { type: 'string' } },
    });
    const count = Number(values.repeats);
    if (!Number.isInteger(count) || count < 1) refuse(`--repeats takes a whole number ≥ 1, not "${values.repeats}"`);
    if (positionals.length > 1) refuse(`one filter at most, not ${positionals.length}`);
    return { filter: positionals[0] ?? '', repeats: count, json: values.json };
  } catch (error) {
    return refuse(error.message);
  }
}

/** @returns {never} */
function refuse(message) {
  console.error(`bench: ${message}`);
  process.exit(1);
}

function torchFacts(peer) {
  const { torch, blas } = peer?.facts ?? {};
  return torch === undefined ? {} : { torch, blas };
}
