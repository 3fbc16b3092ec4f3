export { openArchive } from './open-archive.js';
