export { catalogueOn, type Events } from './events.js';
export { businessKey, type BookingDocument } from './business-key.js';
export { inbox, type BalanceDocument } from './inbox.js';
export { naturallyIdempotent, type ContactDocument } from './naturally-idempotent.js';
export { optimisticVersion, type SummaryDocument } from './optimistic-version.js';
export { stateMachine, type DeliveryDocument } from './state-machine.js';
