export { createS3Archive, type S3ArchiveOptions } from './s3-archive.js';
