export type { CheckpointChoice } from '../run/index.js';
export { type TranslationConfig, translationSchema } from './config.js';
export type { Answers, ModelReach, Question, TokenModel } from './decode/token-model.js';
export { Translator, type TranslatorOptions } from './decode/translator.js';
export { evaluateTranslation, type TranslationEvaluationOptions, type TranslationScores } from './evaluate.js';
export { type FairseqImportOptions, readFairseq } from './exchange/fairseq.js';
export { type ForeignModel, type ImportedRunOptions, saveImported } from './exchange/foreign.js';
export { type HuggingFaceImportOptions, readHuggingFace } from './exchange/huggingface.js';
export { type Exported, type ExportOptions, exportHuggingFace, exportParameters, exportTranslation } from './export.js';
export * from './model/config.js';
export * from './model/transformer.js';
export * from './policies/index.js';
export type {
  Action,
  Counts,
  Policy,
  PolicyState,
  Proposal,
  View,
} from './policies/policy.js';
export { TranslationProblem } from './problem.js';
