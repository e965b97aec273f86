export * from './config.js';
export * from './loss.js';
export * from './transformer.js';
