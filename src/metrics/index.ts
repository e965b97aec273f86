export {
  type BleuOptions,
  type BleuScore,
  bleuFromStatistics,
  bleuMetric,
  bleuStatistics,
  corpusBleu,
  formatBleu,
  formatMultiBleu,
  type MultiBleuOptions,
  multiBleu,
  multiBleuFromStatistics,
  multiBleuMetric,
  SMOOTHINGS,
  type Smoothing,
  sentenceBleu,
} from './bleu.js';
export { type ChrfOptions, chrfMetric, corpusChrf, sentenceChrf } from './chrf.js';
export {
  type DailyScore,
  dailyScores,
  type ForecastDay,
  type ForecastScores,
  forecastScores,
  labelledSquaredError,
  meanSquaredError,
} from './forecast.js';
export { type InstanceCount, parseInstance } from './instances.js';
export {
  averageLagging,
  averageProportion,
  averageTokenDelay,
  type CorpusLatency,
  corpusLatency,
  differentiableAverageLagging,
  instanceLatency,
  LATENCY_CONVENTIONS,
  type Latency,
  type LatencyConvention,
  type LatencyInstance,
  type LatencyOptions,
  type OddDelays,
  oddDelays,
  yetAnotherAverageLagging,
} from './latency.js';
export { type Exposures, neutralised } from './neutralise.js';
export {
  approximateRandomisation,
  type BlockBootstrap,
  type BlockBootstrapOptions,
  type BootstrapScore,
  blockBootstrap,
  type PairedBootstrap,
  pairedBootstrap,
  type RandomisationTest,
  resampleScores,
} from './paired-tests.js';
export { Pcg64 } from './pcg64.js';
export {
  holm,
  type Interval,
  incompleteBeta,
  interval,
  type PairedTest,
  pairedTTest,
  studentCritical,
  studentTwoSided,
  wilcoxonSignedRank,
} from './seed-tests.js';
export {
  corpusScore,
  measureSegments,
  type SegmentMetric,
  type SegmentStatistics,
  sumSegments,
  type TestSignature,
} from './segments.js';
export { averageRanks, mean, pearson, spearman, standardDeviation } from './statistics.js';
export { corpusTer, editCount, sentenceTer, type TercomOptions, tercomWords, terMetric } from './ter.js';
export {
  bleuTokenizer,
  isWithoutSpaces,
  LATENCY_UNITS,
  type LatencyUnit,
  latencyUnit,
  outputLength,
  referenceLength,
  TOKENIZER_NAMES,
  type TokenizerName,
  tokenizers,
} from './tokenizers.js';
