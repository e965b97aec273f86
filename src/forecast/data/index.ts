export * from './calendar.js';
export * from './clean.js';
export * from './features.js';
export * from './labels.js';
export * from './normaliser.js';
export * from './panel.js';
