export type { Costs } from './account.js';
export * from './backtest.js';
export * from './groups.js';
export * from './risk.js';
export * from './topk-drop.js';
