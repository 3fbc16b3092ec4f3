import { cacheFolder } from './cache/cache-folder.js';

/** Told what is going on while something takes long (downloads, installs, starts), one line at a time. */
export type Progress = (line: string) => void;

/** What every start shares. */
export interface EmbeddedOptions {
  /** Default: silence. */
  progress?: Progress;
  /** Where the servers keep data and logs. Kept on stop, and used again by the next start; default: a temporary folder, removed on stop. */
  dataFolder?: string;
  /** Where addresses, tools and the cache are looked up; default: the environment of this process. */
  environment?: NodeJS.ProcessEnv;
  /** Called when a server ends that nobody asked to end. */
  onUnexpectedExit?: (error: Error) => void;
}

/** EmbeddedOptions with every default filled in. */
export interface Surroundings {
  progress: Progress;
  environment: NodeJS.ProcessEnv;
  cache: string;
  onUnexpectedExit: (error: Error) => void;
}

export function surroundings(options: EmbeddedOptions): Surroundings {
  const environment = options.environment ?? process.env;
  return {
    progress: options.progress ?? (() => undefined),
    environment,
    cache: cacheFolder(environment),
    onUnexpectedExit: options.onUnexpectedExit ?? (() => undefined),
  };
}
