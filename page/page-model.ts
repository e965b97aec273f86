import type { LiveModel } from 'tcts/serve/live-model.js';
import { IncrementalModel } from 'tcts/translate/decode/incremental-model.js';
import { StepModel, type StepProgram, type StepShape } from 'tcts/translate/decode/step-model.js';
import { type TextSide, TextStream } from 'tcts/translate/decode/text-stream.js';
import { createPolicy, type OwnPolicy, parsePolicies } from 'tcts/translate/policies/index.js';
import { parseBpeCodes } from 'tcts/translate/text/bpe.js';
import { type PipelineConfig, textPipeline } from 'tcts/translate/text/pipeline.js';
import { parseCounts, parseVocabulary } from 'tcts/translate/text/vocabulary.js';
import { fetchModelFile, fetchModelFiles } from './api.js';
import { type ChosenDevice, chooseDevice, DeviceFault, Runtime } from './runtimes.js';

export { LiveSentence } from 'tcts/serve/live-sentence.js';

/** A model that runs in the page. */
export interface PageModel extends LiveModel {
  /** What computes, in words. */
  readonly runsOn: string;
}

/** A run's model with ONNX Runtime in the page; opened once. */
export function openInPage(run: string): Promise<PageModel> {
  const known = models.get(run);
  if (known !== undefined) return known;
  const opening = open(run);
  models.set(run, opening);
  opening.catch(() => models.delete(run));
  return opening;
}

const models = new Map<string, Promise<PageModel>>();

async function open(run: string): Promise<PageModel> {
  const chosen = await chooseDevice();
  try {
    return await openOn(run, chosen);
  } catch (error) {
    if (chosen.device === 'wasm' || !(error instanceof DeviceFault)) throw error;
    return open(run); // on what is left
  }
}

async function openOn(run: string, { device, title }: ChosenDevice): Promise<PageModel> {
  const runtime = await Runtime.load(device);
  // The next sentence reopens the model on the remaining device.
  void runtime.ended.then(() => models.delete(run));
  const files = new Set(await fetchModelFiles(run, device));
  const text = async (name: string) => (await fetchModelFile(run, name, device)).text();
  const bytes = async (name: string) => new Uint8Array(await (await fetchModelFile(run, name, device)).arrayBuffer());
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
  const program = async (step: ExportedStep): Promise<StepProgram> => {
    const session = await runtime.open(await bytes(step.file));
    return {
      inputs: Object.keys(step.inputs),
      outputs: Object.keys(step.outputs),
      run: (feeds, names) => runtime.run(session, feeds, names),
      close: () => session.release(),
    };
  };
  const { model, waits, redecodes = waits === 'full' } = settings;
  const shape = { ...model, beam: 1, redecodes };
  const steps = new StepModel(await program(settings.encoderStep), await program(settings.decoderStep), shape);
  const own = [new IncrementalModel(steps)];
  const training = settings.policy ?? (settings.waits === 'full' ? 'full' : (settings.main ?? 'full'));
  return {
    runsOn: title,
    source,
    target,
    maxPositions: settings.model.maxPositions,
    policy: (spec = settings.policy ?? 'wait-k') => createPolicy(parsePolicies(spec)[0], [training]),
    stream: (policy, onEvent) => new TextStream(own, source, target, policy, { beam: 1, onEvent }),
    close: () => steps.close(),
  };
}

/** What is used of the `settings.json` that `tcts export` writes (docs/translation.md, Export). */
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
