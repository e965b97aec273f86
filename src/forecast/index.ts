export { type ForecastConfig, forecastSchema } from './config.js';
export { type ForecastBatch, type ForecastData, openForecastData, type Part } from './data/dataset.js';
export {
  type Field,
  type PricePanel,
  type Samples,
  samplesBetween,
  summarise,
  valueAt,
} from './data/panel.js';
export { type Backtest, backtest, type Execution } from './evaluation/backtest.js';
export {
  compareForecasts,
  type Evaluation,
  type EvaluationOptions,
  evaluateForecast,
  type ForecastComparison,
  type ForecastFigures,
  type Judgement,
  judge,
  type WindowScores,
} from './evaluation/evaluation.js';
export type { BacktestOptions, BacktestSettings, Costs } from './evaluation/portfolio.js';
export { type Decision, topkDrop } from './evaluation/portfolio.js';
export { type GroupReturns, groupReturns, type Risk, risk } from './evaluation/risk.js';
export { type Forecaster, openForecaster } from './forecaster.js';
export { readCsv, writeCsv } from './formats/csv.js';
export { type DataFormat, dataFormat, type Note, Notes, type Reading } from './formats/format.js';
export { type DataConfig, formats, readPanel } from './formats/index.js';
export { readParquet } from './formats/parquet.js';
export { readQlib } from './formats/qlib.js';
export { type MarketOptions, syntheticMarket } from './formats/synthetic.js';
export { type ModelConfig, models } from './models/index.js';
export {
  type Architecture,
  type ForecastModel,
  forecastModel,
  networkModel,
  type TrunkInputs,
  type TrunkMode,
} from './models/model.js';
export {
  type DayForecast,
  type ForecastOptions,
  type Forecasts,
  forecastDay,
  forecastDays,
  type StockForecast,
  writeForecasts,
} from './predictions.js';
export { createForecast, ForecastProblem } from './problem.js';
export {
  type BoostedTrees,
  featureImportance,
  predictTrees,
  treeCount,
  treesFromJson,
  treesToJson,
} from './trees/model.js';
export {
  type FeatureTable,
  type LabelledTable,
  type TreeOptions,
  tableOfColumns,
  tableOfRows,
} from './trees/options.js';
export { trainTrees } from './trees/train.js';
