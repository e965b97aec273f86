import { env, InferenceSession } from 'onnxruntime-web/wasm';
import type { LiveModel } from 'tcts/serve/live-models.js';
import { IncrementalModel } from 'tcts/translate/decode/incremental-model.js';
import { type TextSide, TextStream } from 'tcts/translate/decode/text-stream.js';
import { createPolicy, parsePolicies } from 'tcts/translate/policies/spec.js';
import { parseBpeCodes } from 'tcts/translate/text/bpe-codes.js';
import { type PipelineConfig, textPipeline } from 'tcts/translate/text/pipeline.js';
import { parseVocabulary } from 'tcts/translate/text/vocabulary.js';
import { parseCounts } from 'tcts/translate/text/word-counts.js';
import { fetchModelFile, fetchModelFiles } from './api.js';
import { ExportedSteps, type ExportSettings } from './exported-steps.js';

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
env.wasm.wasmPaths = '/lib/';

async function open(run: string): Promise<LiveModel> {
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
      }),
    };
  };
  const [source, target] = [await side(configs.source), await side(configs.target)];
  const steps = new ExportedSteps(
    settings,
    await InferenceSession.create(await bytes(settings.encoderStep.file)),
    await InferenceSession.create(await bytes(settings.decoderStep.file)),
  );
  const own = [new IncrementalModel(steps)];
  const training = settings.waits === 'full' ? 'full' : settings.main;
  return {
    source,
    target,
    maxPositions: settings.model.maxPositions,
    policy: (spec = 'wait-k') => createPolicy(parsePolicies(spec)[0], [training]),
    stream: (policy, onEvent) => new TextStream(own, source, target, policy, { beam: 1, onEvent }),
    close: () => steps.close(),
  };
}
