export * from './attention.js';
export * from './embedding.js';
export * from './initializers.js';
export * from './linear.js';
export * from './recurrent.js';
export * from './transformer.js';
