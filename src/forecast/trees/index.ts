export {
  type BoostedTrees,
  type BoostedTreesJson,
  featureImportance,
  predictTrees,
  treeCount,
  treesFromJson,
  treesToJson,
} from './model.js';
export { type TreeOptions, treeOptions } from './options.js';
export { type FeatureTable, type Samples, tableOfColumns, tableOfRows } from './table.js';
export { type TrainedTrees, type TreeRound, type TreeTraining, trainTrees } from './train.js';
