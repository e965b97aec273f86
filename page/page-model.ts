import { env, InferenceSession, Tensor } from 'onnxruntime-web/wasm';
import type { LiveModel } from 'tcts/serve/live-model.js';
import { IncrementalModel } from 'tcts/translate/decode/incremental-model.js';
import { StepModel, type StepProgram, type StepShape } from 'tcts/translate/decode/step-model.js';
import { type TextSide, TextStream } from 'tcts/translate/decode/text-stream.js';
import { createPolicy, type OwnPolicy, parsePolicies } from 'tcts/translate/policies/index.js';
import { parseBpeCodes } from 'tcts/translate/text/bpe.js';
import { type PipelineConfig, textPipeline } from 'tcts/translate/text/pipeline.js';
import { parseCounts, parseVocabulary } from 'tcts/translate/text/vocabulary.js';
import { fetchModelFile, fetchModelFiles, siteFiles } from './api.js';

export { LiveSentence } from 'tcts/serve/live-sentence.js';

/** A run's model with ONNX Runtime in the page; opened once. */
export function openInPage(run: string): Promise<LiveModel> {
  const known = models.get(run);
  if (known !== undefined) return known;
  const opening = open(run);
  models.set(run, opening);
  opening.catch(() => models.delete(run));
  return opening;
}

const models = new Map<string, Promise<LiveModel>>();

// One thread: more would need SharedArrayBuffer, which only isolated pages have.
env.wasm.numThreads = 1;
if (siteFiles === undefined) env.wasm.wasmPaths = { wasm: '/page/ort.wasm' };

/** The runtime of a static site, whose hosts may compress nothing: it is kept compressed (4 MB instead of 14). */
async function loadRuntime(): Promise<void> {
  if (siteFiles === undefined || env.wasm.wasmBinary !== undefined) return;
  const { body, ok, status } = await fetch(`${siteFiles}/ort-wasm.bin`);
  if (!ok || body === null) throw new Error(`the runtime cannot be loaded: the server answers ${status}`);
  env.wasm.wasmBinary = await new Response(body.pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}

async function open(run: string): Promise<LiveModel> {
  await loadRuntime();
  const files = new Set(await fetchModelFiles(run));
  const text = async (name: string) => (await fetchModelFile(run, name)).text();
  const bytes = async (name: string) => new Uint8Array(await (await fetchModelFile(run, name)).arrayBuffer());
  const settings = JSON.parse(await text('settings.json')) as ExportSettings;
  const configs = JSON.parse(await text('text.json')) as { source: PipelineConfig; target: PipelineConfig };
  const optional = async <T>(name: string, parse: (content: string, name: string) => T) =>
    files.has(name) ? parse(await text(name), name) : undefined;
  const side = async (config: PipelineConfig): Promise<TextSide> => {
    const { language } = config;
    const dictionary = `dict.${language}.txt`;
    return {
      vocabulary: parseVocabulary(await text(dictionary), dictionary),
      pipeline: await textPipeline(config, {
        codes: await optional(`codes.${language}`, parseBpeCodes),
        units: await optional(`units.${language}`, parseCounts),
        tokenizerJson: await optional(`tokenizer.${language}.json`, (content) => content),
        sentencePiece: files.has(`spm.${language}.model`) ? await bytes(`spm.${language}.model`) : undefined,
      }),
    };
  };
  const [source, target] = [await side(configs.source), await side(configs.target)];
  const steps = exportedSteps(
    settings,
    await InferenceSession.create(await bytes(settings.encoderStep.file)),
    await InferenceSession.create(await bytes(settings.decoderStep.file)),
  );
  const own = [new IncrementalModel(steps)];
  const training = settings.policy ?? (settings.waits === 'full' ? 'full' : (settings.main ?? 'full'));
  return {
    source,
    target,
    maxPositions: settings.model.maxPositions,
    policy: (spec = settings.policy ?? 'wait-k') => createPolicy(parsePolicies(spec)[0], [training]),
    stream: (policy, onEvent) => new TextStream(own, source, target, policy, { beam: 1, onEvent }),
    close: () => steps.close(),
  };
}

/** What is used of the `settings.json` that `tcts export` writes. */
interface ExportSettings {
  /** Of models that were trained for wait-k or whole sentences. */
  readonly main?: number;
  readonly waits?: number | 'full';
  /** Of models that learned when to read. */
  readonly policy?: OwnPolicy;
  readonly redecodes?: boolean;
  readonly model: Pick<StepShape, 'encoder' | 'width' | 'maxPositions' | 'decoderLayers' | 'heads'>;
  readonly encoderStep: ExportedStep;
  readonly decoderStep: ExportedStep;
}

interface ExportedStep {
  readonly file: string;
  readonly inputs: Readonly<Record<string, string>>;
  readonly outputs: Readonly<Record<string, string>>;
}

/** The two exported models as one that reads and writes token by token (docs/translation.md, Export). */
function exportedSteps(
  { model, waits, redecodes = waits === 'full', encoderStep, decoderStep }: ExportSettings,
  encoder: InferenceSession,
  decoder: InferenceSession,
): StepModel {
  const shape = { ...model, beam: 1, redecodes };
  return new StepModel(program(encoderStep, encoder), program(decoderStep, decoder), shape);
}

function program({ inputs, outputs: known }: ExportedStep, session: InferenceSession): StepProgram {
  return {
    inputs: Object.keys(inputs),
    outputs: Object.keys(known),
    run: async (feeds, names) => {
      const given = Object.entries(feeds).map(([name, { data, shape }]) => [
        name,
        data instanceof BigInt64Array
          ? new Tensor('int64', data, [...shape])
          : new Tensor('float32', data as Float32Array, [...shape]),
      ]);
      const outputs = await session.run(Object.fromEntries(given), names);
      return Object.fromEntries(
        names.map((name) => [name, { data: outputs[name].data as Output, shape: outputs[name].dims }]),
      );
    },
    close: () => session.release(),
  };
}

type Output = Float32Array<ArrayBuffer> | BigInt64Array<ArrayBuffer>;
