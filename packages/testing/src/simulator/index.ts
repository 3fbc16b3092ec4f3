export type { Finding } from './cluster.js';
export { NO_FAULTS, drawKnobs, type Knobs } from './knobs.js';
export { SABOTAGES, type Sabotage } from './sabotage.js';
export { simulate, type SimulationOptions, type SimulationResult } from './simulate.js';
