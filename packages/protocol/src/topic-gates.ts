import { NOTHING_PAUSED, isPaused, type Pause } from './pause.js';

/**
 * Topics that cannot be sent to (missing, of the wrong type, no permission, or taking nothing for long), or that an operator has
 * paused.
 *
 * A topic is *open* until a send fails for the topic's sake. Then it is *closed*: its lanes are held, and no attempt is
 * counted. When its wait is over it is *probing*: one lane may send, all others stay held. A success opens it, another
 * failure closes it for longer. The lanes take turns at probing, since the fault may be the probing lane's own. A paused
 * topic admits no lane, whatever else it is.
 */
interface Gate<Lane> {
  failures: number;
  probing: boolean;
  /** The lane that probes, or the last one that failed. */
  lane: Lane;
}

export class TopicGates<Lane> {
  readonly #gates = new Map<string, Gate<Lane>>();
  readonly #lastSuccessAtMs = new Map<string, number>();
  #pause = NOTHING_PAUSED;

  /** Returns whether something that was paused may no longer be. */
  setPause(pause: Pause): boolean {
    const before = this.#pause;
    this.#pause = pause;
    return before.all ? !pause.all : before.topics.some((topic) => !isPaused(pause, topic));
  }

  admits(topic: string, lane: Lane): boolean {
    if (isPaused(this.#pause, topic)) return false;
    const gate = this.#gates.get(topic);
    return gate === undefined || (gate.probing && gate.lane === lane);
  }

  /** Closes a topic after a failed send. Returns how many probes in a row have failed, 1 at first; 0 when it was closed already. */
  close(topic: string, lane: Lane): number {
    const gate = this.#gates.get(topic);
    if (gate !== undefined && !(gate.probing && gate.lane === lane)) return 0;
    const failures = (gate?.failures ?? 0) + 1;
    this.#gates.set(topic, { failures, probing: false, lane });
    return failures;
  }

  /** Whether the topic is closed, and no lane probes it. */
  awaitsProbe(topic: string): boolean {
    return this.#gates.get(topic)?.probing === false;
  }

  /** The wait of a closed topic is over: `lane` may now send. */
  probe(topic: string, lane: Lane): void {
    const gate = this.#gates.get(topic);
    if (gate !== undefined) Object.assign(gate, { probing: true, lane });
  }

  /** The topic that a lane probes. */
  probedBy(lane: Lane): string | null {
    for (const [topic, gate] of this.#gates) if (gate.probing && gate.lane === lane) return topic;
    return null;
  }

  /** Returns true when it was closed. */
  open(topic: string): boolean {
    return this.#gates.delete(topic);
  }

  succeeded(topic: string, nowMs: number): void {
    this.#lastSuccessAtMs.set(topic, nowMs);
  }

  /** Whether the topic has taken a message at or after `sinceMs`. */
  hasSucceededSince(topic: string, sinceMs: number): boolean {
    const lastMs = this.#lastSuccessAtMs.get(topic);
    return lastMs !== undefined && lastMs >= sinceMs;
  }

  get closed(): readonly string[] {
    return [...this.#gates.keys()];
  }
}
