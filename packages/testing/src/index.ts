export * from './checker/index.js';
export * from './memory/index.js';
