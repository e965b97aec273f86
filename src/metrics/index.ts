export {
  type BleuOptions,
  type BleuScore,
  bleuFromStatistics,
  bleuMetric,
  bleuStatistics,
  corpusBleu,
  formatBleu,
  SMOOTHINGS,
  type Smoothing,
  sentenceBleu,
} from './bleu.js';
export { type BlockBootstrap, type BlockBootstrapOptions, blockBootstrap } from './block-bootstrap.js';
export { type ChrfOptions, chrfMetric, corpusChrf, sentenceChrf } from './chrf.js';
export { averageRanks, pearson, spearman } from './correlation.js';
export { incompleteBeta, studentCritical, studentTwoSided } from './distributions.js';
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
  type CorpusLatency,
  corpusLatency,
  differentiableAverageLagging,
  instanceLatency,
  LATENCY_CONVENTIONS,
  type Latency,
  type LatencyConvention,
  type LatencyInstance,
  type OddDelays,
  oddDelays,
} from './latency.js';
export {
  formatMultiBleu,
  type MultiBleuOptions,
  multiBleu,
  multiBleuFromStatistics,
  multiBleuMetric,
} from './multi-bleu.js';
export {
  approximateRandomisation,
  type BootstrapScore,
  type PairedBootstrap,
  pairedBootstrap,
  type RandomisationTest,
  resampleScores,
} from './paired-tests.js';
export { Pcg64 } from './pcg64.js';
export { holm, type Interval, interval, type PairedTest, pairedTTest, wilcoxonSignedRank } from './seed-tests.js';
export {
  corpusScore,
  measureSegments,
  type SegmentMetric,
  type SegmentStatistics,
  sumSegments,
  type TestSignature,
} from './segments.js';
export { mean, standardDeviation } from './summation.js';
export { corpusTer, editCount, sentenceTer, terMetric } from './ter.js';
export { type TercomOptions, tercomWords } from './tercom-tokenizer.js';
export { TOKENIZER_NAMES, type TokenizerName, tokenizers } from './tokenizers.js';
export {
  bleuTokenizer,
  isWithoutSpaces,
  LATENCY_UNITS,
  type LatencyUnit,
  latencyUnit,
  outputLength,
  referenceLength,
} from './units.js';
