export * from './config.js';
export { openSeries, type PartName, type SeriesData, seriesData, windowsAt } from './dataset.js';
export { type SeriesBatch, SeriesProblem } from './problem.js';
export { readTable, type SeriesTable, syntheticSeries, type TableFormat, tableFormat, tableFormats } from './table.js';
