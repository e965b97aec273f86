export { type AdaptiveOptions, adaptive } from './adaptive.js';
export { monotonic } from './monotonic.js';
export { createPolicy, fileNameOf, ownPolicy, type PolicySpec, parsePolicies, type Training } from './spec.js';
export { type WaitIfOptions, waitIfDiff, waitIfWorse } from './wait-if.js';
