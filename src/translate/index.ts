export type { CheckpointChoice } from '../run/index.js';
export { type TranslationConfig, translationSchema } from './config.js';
export type {
  Action,
  Counts,
  Policy,
  PolicyState,
  Proposal,
  View,
} from './decode/policy.js';
export type { Answers, Question, TokenModel } from './decode/token-model.js';
export { Translator, type TranslatorOptions } from './decode/translator.js';
export { evaluateTranslation, type TranslationEvaluationOptions, type TranslationScores } from './evaluate.js';
export { type FairseqImportOptions, readFairseq } from './exchange/fairseq.js';
export { type ForeignModel, type ImportedRunOptions, saveImported } from './exchange/foreign.js';
export { type HuggingFaceImportOptions, readHuggingFace } from './exchange/huggingface.js';
export { exportHuggingFace } from './exchange/huggingface-export.js';
export { type Exported, type ExportOptions, exportParameters, exportTranslation } from './export.js';
export * from './model/config.js';
export * from './model/loss.js';
export * from './model/transformer.js';
export * from './policies/index.js';
export { TranslationProblem } from './problem.js';
