export { pointsCollections, type AccountDocument, type AwardDocument, type PointsCollections } from './documents.js';
export { createPointsWorker } from './service.js';
