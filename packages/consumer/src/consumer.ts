import { NightporterError, Wakeup, type Random } from '@nightporter/protocol';
import { brokerDeadLetterLoop } from './broker-dead-letters.js';
import { CatchUpSign } from './catch-up-sign.js';
import { StoreCircuit } from './circuit.js';
import { copyLoop } from './copy-loop.js';
import { Counters } from './counters.js';
import { FilterGuard } from './duplicates.js';
import { BacklogSign, DueBell, type ConsumerPorts, type Engine } from './engine.js';
import { gapLoop } from './gap-loop.js';
import { assertOneGroup } from './group-names.js';
import { ledgerLoop } from './ledger-loop.js';
import { resolveOptions, type ConsumerOptions, type ConsumerSetup } from './options.js';
import { receiveLoop } from './receive-loop.js';
import { retryLoop, scanLoop } from './retry-loop.js';
import type { ConsumerSnapshot } from './snapshot.js';
import { Turns } from './turns.js';

/** Of the drain, the part that is kept for rolling back what still runs; at most {@link ROLL_BACK_MS_MAX}. */
const ROLL_BACK_SHARE = 0.2;
const ROLL_BACK_MS_MAX = 1_000;

/**
 * One member of a consumer group. `run` may be called once; it resolves when a `stop` has drained, and rejects when an
 * invariant is broken. `stop` resolves within `drainMs`: what is in hand is finished, or rolled back near the end.
 */
export interface Consumer {
  run(): Promise<void>;
  stop(): Promise<void>;
  snapshot(): ConsumerSnapshot;
}

/** Rejects options that cannot work with NP_CONFIG_INVALID; starts nothing before `run`. */
export function createConsumer<Session>(
  ports: ConsumerPorts<Session>,
  setup: ConsumerSetup<Session> & Partial<ConsumerOptions>,
): Consumer {
  return new ConsumerEngine(ports, setup);
}

/** `idle` → (run) `running` → (stop, or a broken invariant) `stopping` → (drained, or its time is up) `stopped`. */
class ConsumerEngine<Session> implements Consumer {
  readonly #engine: Engine<Session>;
  readonly #ended = new Wakeup();
  readonly #group: string;
  #state: ConsumerSnapshot['state'] = 'idle';
  #fault: Error | null = null;

  constructor(ports: ConsumerPorts<Session>, setup: ConsumerSetup<Session> & Partial<ConsumerOptions>) {
    const { group, handlers, ...given } = setup;
    const options = resolveOptions(given);
    assertOneGroup(group, ports);
    const { clock, random } = ports;
    const counters = new Counters();
    const limits = { firstMs: options.pauseFirstMs, maxMs: options.pauseMaxMs };
    const delays = options.retryDelays ?? { kind: 'schedule' as const, delaysMs: options.retryScheduleMs };
    this.#group = group;
    this.#engine = {
      owner: `${group}-${uniquePart(random)}`,
      ports,
      options,
      handlers,
      retryPolicy: { delays, attemptsMax: options.attemptsMax },
      // A claim that was taken in the first half of its time has run out when an outage took the second.
      circuit: new StoreCircuit({ clock, random, limits, longOutageMs: options.claimMs / 2 }),
      turns: new Turns(clock),
      counters,
      filter: new FilterGuard(),
      due: new DueBell(),
      backlog: new BacklogSign(),
      catchUp: new CatchUpSign(),
      stopping: new Wakeup(),
      rollBack: new Wakeup(),
      tell: (event) => {
        counters.add(event);
        ports.observe(event);
      },
      fail: (error) => {
        this.#fault ??= error instanceof Error ? error : new Error(String(error));
        this.#beginStop();
      },
    };
  }

  async run(): Promise<void> {
    if (this.#state !== 'idle') {
      throw new NightporterError(
        'NP_INTERNAL',
        `run() of consumer ${this.#group} was called while it is ${this.#state}.`,
      );
    }
    this.#state = 'running';
    const engine = this.#engine;
    const { receiveLoops } = engine.options;
    const receivers = engine.ports.subscribers.flatMap((subscriber, index) =>
      Array.from({ length: receiveLoops }, (_, loop) =>
        receiveLoop(engine, { subscriber, loop: index * receiveLoops + loop }),
      ),
    );
    const loops = [
      ...receivers,
      retryLoop(engine),
      scanLoop(engine),
      gapLoop(engine),
      ledgerLoop(engine),
      brokerDeadLetterLoop(engine),
      copyLoop(engine),
    ];
    const drained = Promise.all(loops.map((loop) => loop.catch(engine.fail))).then(() => {
      this.#ended.ringForGood();
    });
    await Promise.race([drained, this.#ended.wait()]);
    this.#state = 'stopped';
    if (this.#fault !== null) throw this.#fault;
  }

  async stop(): Promise<void> {
    if (this.#state === 'idle') this.#state = 'stopped';
    if (this.#state === 'stopped') return;
    this.#beginStop();
    await this.#ended.wait();
  }

  snapshot(): ConsumerSnapshot {
    const { circuit, counters } = this.#engine;
    return { ...counters.values(), paused: circuit.isOpen, state: this.#state };
  }

  #beginStop(): void {
    if (this.#state !== 'running') return;
    this.#state = 'stopping';
    const { options, ports, rollBack, stopping } = this.#engine;
    const rollBackMs = Math.min(ROLL_BACK_MS_MAX, options.drainMs * ROLL_BACK_SHARE);
    const timers = [
      ports.clock.after(options.drainMs - rollBackMs, () => {
        rollBack.ringForGood();
      }),
      ports.clock.after(options.drainMs, () => {
        this.#ended.ringForGood();
      }),
    ];
    this.#ended.onceRung(() => {
      for (const cancel of timers) cancel();
    });
    stopping.ringForGood();
  }
}

/** 64 random bits in hex. */
function uniquePart(random: Random): string {
  const word = (): string =>
    Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  return word() + word();
}
