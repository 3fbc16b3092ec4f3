import { digestOf, envelopeOf } from '@nightporter/contracts';
import { PublishError, type Publication, type Publisher, type PublishRequest } from '@nightporter/relay';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * What becomes of one message. `twice`: two copies, one right after the other. `twice-later`: the second copy long after, when its
 * successors are out. `late`: said to be sent, and sent long after. `never`: said to be sent, and lost. `altered`: with other data than its
 * digest is of. `forged`: with other data, and their digest. `refused`: never sent, since the broker will not have it.
 */
export type Carriage = 'once' | 'twice' | 'twice-later' | 'late' | 'never' | 'altered' | 'forged' | 'refused';

/** A publisher that is worse than a relay and a broker may be. */
export interface CarelessPublisher extends Publisher {
  readonly carried: ReadonlyMap<Carriage, number>;
  /** Sends that were rejected. */
  readonly failed: number;
  /** Resolves once every late copy is sent; rejects if one could not be. */
  settled(): Promise<void>;
}

export function carelessPublisher(
  publisher: Publisher,
  { carriageOf, lateMs }: { carriageOf: (row: PublishRequest['row']) => Carriage; lateMs: number },
): CarelessPublisher {
  const carried = new Map<Carriage, number>();
  const later: Promise<unknown>[] = [];
  let failed = 0;
  const sendLater = (request: PublishRequest): void => {
    const sent = delay(lateMs).then(() => sendAtLast(publisher, request));
    // Told by `settled`; until then the rejection must not count as nobody's.
    sent.catch(() => undefined);
    later.push(sent);
  };
  return {
    carried,
    get failed() {
      return failed;
    },
    async publish(request) {
      const carriage = carriageOf(request.row);
      const publication = await carry(carriage, { publisher, request, sendLater }).catch((error: unknown) => {
        failed += 1;
        throw error;
      });
      carried.set(carriage, (carried.get(carriage) ?? 0) + 1);
      return publication;
    },
    async settled() {
      await Promise.all(later);
    },
  };
}

/** What the journal's handler takes, and nobody has written. */
const OTHER_DATA = { orders: { takesMs: 1 } };

async function carry(
  carriage: Carriage,
  {
    publisher,
    request,
    sendLater,
  }: { publisher: Publisher; request: PublishRequest; sendLater: (request: PublishRequest) => void },
): Promise<Publication> {
  switch (carriage) {
    case 'once':
      return publisher.publish(request);
    case 'twice':
      await publisher.publish(request);
      return publisher.publish(request);
    case 'twice-later': {
      const publication = await publisher.publish(request);
      sendLater(request);
      return publication;
    }
    case 'late':
      sendLater(request);
      return { messageId: 'late' };
    case 'never':
      return { messageId: 'never' };
    case 'altered':
      return publisher.publish({ ...request, row: { ...request.row, payload: OTHER_DATA } });
    case 'forged': {
      const row = { ...request.row, payload: OTHER_DATA };
      return publisher.publish({ ...request, row: { ...row, digest: digestOf(envelopeOf(row, 'original')) } });
    }
    case 'refused':
      throw new PublishError({ failure: 'permanent', answered: true, message: 'told to refuse it' });
  }
}

const ATTEMPTS_MAX = 10;

/** Nobody repeats a late copy but we. */
async function sendAtLast(publisher: Publisher, request: PublishRequest): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await publisher.publish(request);
      return;
    } catch (error) {
      if (!(error instanceof PublishError) || error.failure !== 'transient' || attempt === ATTEMPTS_MAX) throw error;
      await delay(200);
    }
  }
}
