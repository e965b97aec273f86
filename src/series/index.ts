export * from './config.js';
export { openSeries, type PartName, type SeriesData, seriesData, windowsAt } from './data-set.js';
export { type SeriesBatch, SeriesProblem } from './problem.js';
export { syntheticSeries } from './synthetic.js';
export { readTable, type Table, type TableSource } from './table.js';
