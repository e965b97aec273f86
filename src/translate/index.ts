export { type TranslationConfig, translationSchema } from './config.js';
export { type Action, type Policy, type PolicyState, waitK } from './decode/policy.js';
export { Translator, type TranslatorOptions } from './decode/translator.js';
export { evaluateTranslation, type TranslationEvaluationOptions, type TranslationScores } from './evaluate.js';
export { type Exported, type ExportOptions, exportTranslation } from './export.js';
export * from './model/index.js';
export { TranslationProblem } from './problem.js';
