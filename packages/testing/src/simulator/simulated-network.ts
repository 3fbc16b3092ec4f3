import type { CallOptions, Network } from '../memory/index.js';
import type { Incarnation } from './incarnation.js';
import type { SeededRandom } from './random.js';
import type { Schedule } from './schedule.js';
import type { Trace } from './trace.js';

/** What may happen to calls now; mutable, since faults end at some time. */
export interface NetworkFaults {
  databaseFaults: number;
  brokerFaults: number;
  crashAtCalls: number;
  readonly slowness: number;
  /** On top of what a long poll takes. */
  readonly timeOutMs: number;
}

export interface NetworkWorld {
  readonly schedule: Schedule;
  readonly random: SeededRandom;
  readonly trace: Trace;
  readonly faults: NetworkFaults;
  /** Calls that still may execute although nobody waits for them any more. */
  readonly late: { count: number };
}

type Fate =
  | { readonly kind: 'carried out' }
  /** Refused at once, and not carried out. */
  | { readonly kind: 'unreachable' }
  /** Not carried out; the caller learns nothing. */
  | { readonly kind: 'lost' }
  /** Carried out; the caller learns nothing. */
  | { readonly kind: 'answer lost' }
  /** Carried out when its caller may have given up or died. */
  | { readonly kind: 'late'; readonly delayMs: number };

type CrashMoment = 'before sending' | 'on the way' | 'before the answer' | null;

type Answer<Result> =
  { readonly kind: 'result'; readonly result: Result } | { readonly kind: 'error'; readonly error: unknown };

/** The way from one life of a process to the servers. */
export function simulatedNetwork(incarnation: Incarnation, world: NetworkWorld): Network {
  return {
    call: <Result>(name: string, operation: () => Result, options: CallOptions<Result>) =>
      new Promise<Result>((resolve, reject) => {
        if (incarnation.alive) new Call({ incarnation, world, name, operation, options }, resolve, reject).send();
      }),
  };
}

interface CallSetting<Result> {
  readonly incarnation: Incarnation;
  readonly world: NetworkWorld;
  readonly name: string;
  readonly operation: () => Result;
  readonly options: CallOptions<Result>;
}

class Call<Result> {
  readonly #setting: CallSetting<Result>;
  readonly #resolve: (result: Result) => void;
  readonly #reject: (error: unknown) => void;
  readonly #fate: Fate;
  readonly #crash: CrashMoment;
  #isOver = false;

  constructor(setting: CallSetting<Result>, resolve: (result: Result) => void, reject: (error: unknown) => void) {
    this.#setting = setting;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#fate = drawFate(setting);
    this.#crash = drawCrash(setting.world);
  }

  send(): void {
    const { incarnation, world, name, options } = this.#setting;
    world.trace.note(`${incarnation.name} ${name} ${this.#fate.kind}`);
    if (this.#crash === 'before sending') {
      this.#die();
      return;
    }
    this.#travel();
    if (this.#crash === 'on the way') this.#die();
    if (this.#fate.kind === 'carried out') return;
    const unreachable = this.#fate.kind === 'unreachable';
    const afterMs = unreachable ? this.#latency() : world.faults.timeOutMs + (options.longPoll?.forMs ?? 0);
    world.schedule.after(afterMs, () => {
      this.#finish({ kind: 'error', error: options.noAnswer(unreachable ? 'unreachable' : 'unanswered') });
    });
  }

  #travel(): void {
    const { world } = this.#setting;
    switch (this.#fate.kind) {
      case 'unreachable':
      case 'lost':
        return;
      case 'carried out':
      case 'answer lost':
        world.schedule.after(this.#latency(), () => {
          this.#arrive();
        });
        return;
      case 'late':
        world.late.count += 1;
        world.schedule.after(this.#fate.delayMs, () => {
          world.late.count -= 1;
          if (this.#isOver || !this.#setting.incarnation.alive) world.trace.note(`late ${this.#setting.name} executes`);
          this.#arrive();
        });
    }
  }

  /** At the server. A long poll waits here; one whose caller has died waits, and takes, all the same. */
  #arrive(): void {
    const poll = this.#setting.options.longPoll;
    const { schedule } = this.#setting.world;
    const deadlineMs = schedule.nowMs + (poll?.forMs ?? 0);
    const attempt = (): void => {
      const answer = this.#execute();
      const isEmpty = poll !== undefined && answer.kind === 'result' && poll.isEmpty(answer.result);
      if (isEmpty && schedule.nowMs < deadlineMs) this.#waitForChange(poll.changes, deadlineMs, attempt);
      else this.#answer(answer);
    };
    attempt();
  }

  #waitForChange(
    changes: NonNullable<CallOptions<Result>['longPoll']>['changes'],
    deadlineMs: number,
    attempt: () => void,
  ): void {
    const { schedule } = this.#setting.world;
    let forget = (): void => undefined;
    const cancel = schedule.after(deadlineMs - schedule.nowMs, () => {
      forget();
      attempt();
    });
    forget = changes.onceRung(() => {
      cancel();
      schedule.after(this.#latency(), attempt);
    });
  }

  #execute(): Answer<Result> {
    try {
      return { kind: 'result', result: this.#setting.operation() };
    } catch (error) {
      return { kind: 'error', error };
    }
  }

  #answer(answer: Answer<Result>): void {
    if (this.#fate.kind === 'answer lost') return;
    this.#setting.world.schedule.after(this.#latency(), () => {
      if (this.#crash === 'before the answer') this.#die();
      this.#finish(answer);
    });
  }

  #finish(answer: Answer<Result>): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#setting.incarnation.deliver(() => {
      if (answer.kind === 'result') this.#resolve(answer.result);
      else this.#reject(answer.error);
    });
  }

  #die(): void {
    const { incarnation, world, name } = this.#setting;
    if (!incarnation.alive) return;
    world.trace.note(`${incarnation.name} dies at ${name} (${String(this.#crash)})`);
    incarnation.die();
  }

  #latency(): number {
    const { random, faults } = this.#setting.world;
    return random.chance(0.05) ? random.between(5, 80) : random.between(0.5, 4) * faults.slowness;
  }
}

function drawFate<Result>({ world, options }: CallSetting<Result>): Fate {
  const { random, faults } = world;
  const rate = options.target === 'database' ? faults.databaseFaults : faults.brokerFaults;
  if (!random.chance(rate)) return { kind: 'carried out' };
  const fate = random.pick(['unreachable', 'lost', 'answer lost', 'answer lost', 'late', 'late'] as const);
  if (fate !== 'late') return { kind: fate };
  return { kind: 'late', delayMs: random.chance(0.5) ? random.between(100, 3_000) : random.between(3_000, 20_000) };
}

function drawCrash({ random, faults }: NetworkWorld): CrashMoment {
  if (!random.chance(faults.crashAtCalls)) return null;
  return random.pick(['before sending', 'on the way', 'before the answer']);
}
