export { createHttpLedger } from './http-ledger.js';
export { registerOverHttp, type HttpRegistration, type RemoteStart } from './http-registration.js';
export { createHttpGroupRegistry } from './http-registry.js';
export { type LedgerServer } from './ledger-client.js';
export * as wire from './wire.js';
