export * from './layers.js';
export * from './transformer.js';
