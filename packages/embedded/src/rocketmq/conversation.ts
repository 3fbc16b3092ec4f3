import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { NightporterError } from '@nightporter/protocol';

const ANSWER_LIMIT_MS = 20_000;

interface Waiting {
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
}

interface Message {
  event?: string;
  id?: number;
  result?: unknown;
  error?: string;
}

/** The owner's side of the launcher's protocol: one JSON object a line in each direction. */
export class Conversation {
  readonly #requests: Writable;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ready: Promise<void>;
  #nextId = 1;
  #ended: string | undefined;

  constructor({ requests, answers }: { requests: Writable | null; answers: Readable | null }) {
    if (requests === null || answers === null)
      throw new NightporterError('NP_INTERNAL', 'The launcher was started without pipes');
    this.#requests = requests;
    // The process may die while a request is on its way; `end` tells whoever waits.
    requests.on('error', () => undefined);
    this.#ready = new Promise((resolve) => {
      createInterface({ input: answers }).on('line', (line) => {
        if (!line.startsWith('{')) return; // not the launcher's: a JVM may print warnings of its own
        const message = JSON.parse(line) as Message;
        if (message.event === 'ready') resolve();
        else this.#answer(message);
      });
    });
  }

  /** Resolves once the launcher says that its server can be used. */
  get ready(): Promise<void> {
    return this.#ready;
  }

  /** Resolves with the answer's result. Throws NP_EMBEDDED_CONTROL_FAILED when it is refused, too late, or cannot come any more. */
  async ask(request: { operation: string } & Record<string, unknown>): Promise<unknown> {
    if (this.#ended !== undefined) throw failure(request.operation, this.#ended);
    const id = this.#nextId++;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise((resolve, reject) => {
        this.#waiting.set(id, {
          resolve,
          reject: (error) => {
            reject(failure(request.operation, error.message));
          },
        });
        timer = setTimeout(() => {
          reject(failure(request.operation, `no answer within ${ANSWER_LIMIT_MS} ms`));
        }, ANSWER_LIMIT_MS);
        this.#requests.write(`${JSON.stringify({ id, ...request })}\n`);
      });
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(id);
    }
  }

  /** Asks the launcher to stop; there is no answer but its end. */
  stop(): void {
    this.#requests.end(`${JSON.stringify({ operation: 'stop' })}\n`);
  }

  /** To be called when the process is gone: whoever waits is told why. */
  end(why: string): void {
    this.#ended = why;
    for (const waiting of this.#waiting.values()) waiting.reject(new Error(why));
  }

  #answer(message: Message): void {
    const waiting = message.id === undefined ? undefined : this.#waiting.get(message.id);
    if (waiting === undefined) return;
    if (message.error === undefined) waiting.resolve(message.result);
    else waiting.reject(new Error(message.error));
  }
}

function failure(operation: string, why: string): NightporterError {
  return new NightporterError('NP_EMBEDDED_CONTROL_FAILED', `${operation} failed at the broker: ${why}`);
}
