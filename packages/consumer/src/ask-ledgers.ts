import type { GroupProducer, LedgerAnswer, LedgerPlace } from './ledger-ports.js';

/** A place, and what the ledger has there. */
export interface Answered {
  readonly place: LedgerPlace;
  readonly answer: LedgerAnswer;
  /** Who gave the answer; null where the aggregate is nobody's. */
  readonly producer: GroupProducer | null;
}

/** Asks the producers one after another; an aggregate belongs to one of them, and to the others it is not committed. */
export async function askLedgers(
  producers: readonly GroupProducer[],
  places: readonly LedgerPlace[],
): Promise<readonly Answered[]> {
  let answered = places.map((place): Answered => ({ place, answer: { kind: 'not-committed' }, producer: null }));
  for (const producer of producers) {
    const open = answered.filter(({ answer }) => answer.kind === 'not-committed');
    if (open.length === 0) break;
    const answers = await producer.ledger.readVersions(open.map(({ place }) => place));
    const found = new Map(open.map(({ place }, index) => [place, answers[index]]));
    answered = answered.map((known) => {
      const answer = found.get(known.place);
      return answer === undefined || answer.kind === 'not-committed' ? known : { place: known.place, answer, producer };
    });
  }
  return answered;
}
