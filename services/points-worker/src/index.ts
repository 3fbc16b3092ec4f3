export {
  ensurePointsCollections,
  pointsCollections,
  type AccountDocument,
  type AwardDocument,
  type PointsCollections,
} from './documents.js';
export { pointsFor } from './domain/points.js';
export { createPointsHandlers } from './handlers.js';
export { createPointsWorker } from './service.js';
