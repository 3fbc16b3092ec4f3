import { createCatalogue, defineEvent } from '@nightporter/contracts';
import { z } from 'zod';

/** A book was given to a member. The aggregate is the book: what happens to one book keeps its order. */
const bookLent = defineEvent({
  type: 'BookLent',
  version: 1,
  aggregateType: 'book',
  topic: 'books-events',
  schema: z.strictObject({ memberId: z.string().min(1) }),
});

export const libraryCatalogue = createCatalogue([bookLent]);
