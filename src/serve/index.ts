export { isLoopback } from './listen.js';
export type { BuiltInModel } from './run-reader.js';
export { type PageServer, type ServeOptions, startServer } from './server.js';
export { type AgentOptions, type AgentServer, startAgent } from './simuleval.js';
