import dockerignore from '@balena/dockerignore';

// Its types are those of an ES module, and it is a CommonJS one whose export is the function itself.
const createIgnore = dockerignore as unknown as typeof dockerignore.default;

/** Which paths the rules of a .dockerignore keep from a build. */
export function ignoreRules(text: string): { ignores(path: string): boolean } {
  return createIgnore().add(text.split('\n').filter((line) => line !== '' && !line.startsWith('#')));
}
