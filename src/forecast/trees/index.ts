export {
  type BoostedTrees,
  type BoostedTreesJson,
  featureImportance,
  predictTrees,
  treeCount,
  treesFromJson,
  treesToJson,
} from './model.js';
export {
  type FeatureTable,
  type LabelledTable,
  type TreeOptions,
  tableOfColumns,
  tableOfRows,
  treeOptions,
} from './options.js';
export { type TrainedTrees, type TreeRound, type TreeTraining, trainTrees } from './train.js';
