export type { CheckpointChoice } from './checkpoint-choice.js';
export { type TranslationConfig, translationSchema } from './config.js';
export {
  type Action,
  type Counts,
  type Policy,
  type PolicyState,
  type Proposal,
  type View,
  waitK,
} from './decode/policy.js';
export type { Answers, Question, TokenModel } from './decode/token-model.js';
export { Translator, type TranslatorOptions } from './decode/translator.js';
export { evaluateTranslation, type TranslationEvaluationOptions, type TranslationScores } from './evaluate.js';
export { type Exported, type ExportOptions, exportTranslation } from './export.js';
export * from './model/index.js';
export * from './policies/index.js';
export { TranslationProblem } from './problem.js';
