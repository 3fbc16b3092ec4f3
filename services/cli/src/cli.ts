/** Exit codes, the same for every command. */
export const EXIT = {
  /** Done, and nothing is wrong. */
  ok: 0,
  /** The answer is no: differences, findings, something that is not there, refused, or changed meanwhile. */
  no: 1,
  /** Wrong use: nothing was asked or done. */
  wrongUse: 2,
  /** It could not be found out, or it is not known whether it was done. */
  failed: 3,
} as const;

/** What a command talks to: a terminal, or a test. */
export interface Io {
  /** The result. */
  out(text: string): void;
  /** Whatever is for people beside it. */
  err(text: string): void;
  /** Whether somebody can be asked. */
  readonly isInteractive: boolean;
  /** Asks a person. */
  ask(question: string): Promise<string>;
  /** Ends what goes on for ever, such as `tail`. */
  readonly signal: AbortSignal;
}

/** One run of the program. */
export interface Cli {
  readonly io: Io;
  exitCode: number;
}
