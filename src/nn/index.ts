export * from './layers.js';
export * from './recurrent.js';
export * from './transformer.js';
