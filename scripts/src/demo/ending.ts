/** Undoes what was started: once, the last thing first, whatever the reason for the end. */
export class Ending {
  readonly #undos: { readonly name: string; readonly undo: () => Promise<void> }[] = [];
  #kill: () => void = () => undefined;
  #ended: Promise<void> | null = null;
  readonly #progress: (line: string) => void;

  constructor(progress: (line: string) => void) {
    this.#progress = progress;
    // For ends that leave no time: a crash, or process.exit while something is still being undone.
    process.on('exit', () => {
      this.#kill();
    });
  }

  add(name: string, undo: () => Promise<void>): void {
    this.#undos.push({ name, undo });
  }

  killAtOnce(kill: () => void): void {
    this.#kill = kill;
  }

  /** Resolves once everything is undone; what cannot be undone is told and left. */
  run(): Promise<void> {
    this.#ended ??= this.#undoAll();
    return this.#ended;
  }

  async #undoAll(): Promise<void> {
    for (const { name, undo } of this.#undos.reverse()) {
      try {
        await undo();
      } catch (error) {
        this.#progress(
          `${name} could not be ended properly: ${error instanceof Error ? error.message : String(error)}`,
        );
      }
    }
  }
}
