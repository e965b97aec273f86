import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import {
  corpusLatency,
  instanceLatency,
  LATENCY_CONVENTIONS,
  LATENCY_UNITS,
  type LatencyConvention,
  type LatencyInstance,
  type LatencyUnit,
  oddDelay,
  parseInstance,
} from '../metrics/index.js';
import { readInput, splitLines } from './score-input.js';
import { print, warn } from './terminal.js';

interface LatencyFlags {
  convention: LatencyConvention;
  unit?: LatencyUnit;
  computationAware?: boolean;
  perInstance?: boolean;
  json?: boolean;
}

const MEASURES = ['AL', 'LAAL', 'AP', 'DAL', 'YAAL', 'ATD'] as const;
const UNDEFINED = Object.fromEntries(MEASURES.map((name) => [name, null]));

/** `tcts score latency`. */
export function registerLatency(score: Command): void {
  score
    .command('latency')
    .description('AL, LAAL, AP, DAL, YAAL and ATD of simultaneous translations')
    .argument('<instances>', "one JSON object per line, or SimulEval's instances.log (- for standard input; also .gz)")
    .addOption(
      new Option('--convention <name>', 'simuleval: words, reference length; stacl: subwords, output length')
        .choices(LATENCY_CONVENTIONS)
        .default('simuleval'),
    )
    .addOption(
      new Option(
        '--unit <name>',
        'simuleval: unit of delays and references (default: as in the file, otherwise word)',
      ).choices(LATENCY_UNITS),
    )
    .option('--computation-aware', 'use the recorded elapsed times instead of the delays')
    .option('--per-instance', 'also the figures of each instance')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Example:
  echo '{"delays": [3, 4, 5, 5], "source_length": 5, "reference_length": 4}' | tcts score latency - --json

delays: source words read before each output word, or with --unit char before each character, for languages that are
written without spaces. Instead of reference_length a reference text is accepted. Instances without output are skipped;
one without a reference is measured by its own length. Delays that fall or go beyond the source are refused: they are
not those of the unit that the source is counted in.
YAAL is a mean over the instances that wrote something before the end of their source. elapsed, for --computation-aware:
when each output word was written, in the unit of the delays, which it must not be below.`,
    )
    .action(async (path: string, flags: LatencyFlags) => {
      const input = await readInput(path);
      const instances = splitLines(input).map((line, i) => {
        const text = i === 0 ? line.replace(/^\ufeff/, '') : line;
        return parseInstance(
          text,
          { file: input.name, line: i + 1 },
          flags.convention === 'stacl' ? 'token' : flags.unit,
        );
      });
      if (instances.every((instance) => instance.delays.length === 0)) {
        throw new InputError('no instance has an output: latency is undefined', { file: input.name });
      }
      const { convention, computationAware = false } = flags;
      requirePossible(instances, input.name);
      if (computationAware) requireElapsed(instances, input.name);
      const { counted, skipped, simultaneous, ...mean } = corpusLatency(instances, convention, { computationAware });
      const each = flags.perInstance
        ? instances.map((one) => instanceLatency(one, convention, { computationAware }))
        : undefined;
      const withoutReference = instances.filter((one) => one.referenceLength === undefined).length;
      if (flags.convention === 'simuleval') warnOfLengths(instances, input.name);

      if (flags.json) {
        const counts = {
          counted,
          skipped,
          simultaneous,
          without_reference: withoutReference,
        };
        const list = each?.map((latency) => latency ?? UNDEFINED);
        const how = computationAware ? { convention, computation_aware: true } : { convention };
        print(JSON.stringify({ ...how, ...mean, ...counts, instances: list }));
        return;
      }
      for (const [i, latency] of each?.entries() ?? []) {
        const figures = MEASURES.map((name) => shown(latency?.[name]));
        print([i + 1, ...figures].join('\t'));
      }
      const notes = [counted === 1 ? '1 instance' : `${counted} instances`];
      if (skipped > 0) notes.push(`${skipped} without output skipped`);
      if (withoutReference > 0 && flags.convention === 'simuleval') {
        notes.push(`${withoutReference} without reference measured by their own length`);
      }
      if (simultaneous < counted)
        notes.push(`${counted - simultaneous} without YAAL: nothing written before the source ended`);
      print(`${MEASURES.map((name) => `${name} = ${shown(mean[name])}`).join('  ')}`);
      print(`${convention} convention, ${computationAware ? 'computation-aware, ' : ''}${notes.join(', ')}`);
    });
}

function shown(figure: number | null | undefined): string {
  return figure?.toFixed(3) ?? '–';
}

/** Rejects impossible delays: they are in another unit than the source, or invalid. */
function requirePossible(instances: readonly LatencyInstance[], file: string): void {
  for (const [i, instance] of instances.entries()) {
    const odd = oddDelay(instance);
    if (odd === undefined) continue;
    const { delays, sourceLength } = instance;
    const where = { file, line: i + 1, key: `delays[${odd}]` };
    if (delays[odd] > sourceLength) {
      const sentence = `found ${delays[odd]} for a source of length ${sourceLength}`;
      throw new InputError(`${sentence}: delays and source_length must be counted in the same unit`, where);
    }
    throw new InputError(`found ${delays[odd]} after ${delays[odd - 1]}: delays cannot decrease`, where);
  }
}

/** Computation-aware latency of instances without a clock would be that of the delays, or 0. */
function requireElapsed(instances: readonly LatencyInstance[], file: string): void {
  for (const [i, { delays, elapsed }] of instances.entries()) {
    const where = { file, line: i + 1, key: 'elapsed' };
    if (delays.length === 0) continue;
    if (elapsed === undefined) {
      throw new InputError(
        '--computation-aware needs elapsed times, but none are recorded (zeros count as none)',
        where,
      );
    }
    const early = Array.from(elapsed).findIndex((time, at) => time < delays[at]);
    if (early < 0) continue;
    const found = `${elapsed[early]} for a delay of ${delays[early]}`;
    throw new InputError(`expected times in the unit of the delays and not below them, found ${found}`, where);
  }
}

/** Outputs that are many times as long as their references, or the reverse, were hardly counted in the same unit. */
function warnOfLengths(instances: readonly LatencyInstance[], file: string): void {
  const compared = instances.filter(
    ({ delays, referenceLength }) => delays.length > 0 && referenceLength !== undefined,
  );
  const written = compared.reduce((sum, { delays }) => sum + delays.length, 0);
  const expected = compared.reduce((sum, { referenceLength }) => sum + referenceLength!, 0);
  if (written <= UNLIKELY * expected && expected <= UNLIKELY * written) return;
  warn(
    `${file}: ${written} delays for references of ${expected} units: AL, LAAL and AP mean nothing unless both are counted ` +
      'in the same one (--unit word or char)',
  );
}

// A word has five or six characters where there are spaces, and a sentence ten and more if there are none.
const UNLIKELY = 4;
