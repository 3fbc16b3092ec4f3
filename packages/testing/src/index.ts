export * from './checker/index.js';
export * from './memory/index.js';
export * from './simulator/index.js';
