export * from './backtest/index.js';
export { type Comparison, compareForecasts } from './comparison.js';
export * from './config.js';
export { createForecast } from './create.js';
export * from './data/index.js';
export { type DataSet, openDataSet, openPanel, type Part } from './data-set.js';
export {
  type Evaluation,
  type EvaluationOptions,
  evaluateForecast,
  type ForecastFigures,
  type Judgement,
  judge,
} from './evaluation.js';
export { type DayForecast, type ForecastDayOptions, forecastDay, writeForecast } from './forecast-day.js';
export { type Forecaster, openForecaster } from './forecaster.js';
export { type MarketOptions, syntheticMarket } from './market.js';
export { type ModelConfig, modelSchema } from './models/index.js';
export { type ForecastBatch, ForecastProblem } from './problem.js';
export {
  type BoostedTrees,
  featureImportance,
  predictTrees,
  type TreeOptions,
  trainTrees,
  treesFromJson,
  treesToJson,
} from './trees/index.js';
export { TreesProblem } from './trees-problem.js';
