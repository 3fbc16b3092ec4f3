/** A clock that is wrong by so much, for a process that has not begun yet: flags for Node. */
export function wrongClock(byMs: number): readonly string[] {
  const code = `
    const Right = globalThis.Date;
    globalThis.Date = class extends Right {
      constructor(...given) { super(...(given.length === 0 ? [Right.now() + ${byMs}] : given)); }
      static now() { return Right.now() + ${byMs}; }
    };`;
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`];
}
