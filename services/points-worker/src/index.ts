export { pointsCollections, type AccountDocument, type AwardDocument, type PointsCollections } from './documents.js';
export { pointsFor } from './domain/points.js';
export { createPointsWorker } from './service.js';
