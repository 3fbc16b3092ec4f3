import { ProblemError } from '@nightporter/http';
import { problem } from '../http/problems.js';

/** What cannot be undone is named twice: in the path, and in `confirm`. */
export function assertConfirmed(confirm: string, id: string): void {
  if (confirm === id) return;
  const detail = `confirm is ${JSON.stringify(confirm)}; accepted: ${JSON.stringify(id)}, since this cannot be undone`;
  throw new ProblemError(
    problem('invalid-request', detail, [{ pointer: '#/confirm', detail: 'is not the id in the path' }]),
  );
}
