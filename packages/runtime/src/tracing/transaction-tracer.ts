import type { TraceContext } from '@nightporter/protocol';
import { errorTypeOf, type MaybeContext, type Tracing } from './tracing.js';

/**
 * A span for each transaction of an outbox, with all of its repeats; what is emitted in it names the span. The port of
 * `createOutbox({ tracer })`.
 */
export function transactionTracer(tracing: Tracing, { database }: { readonly database: string }) {
  return {
    async run<Result>(parent: MaybeContext, transaction: (context: TraceContext) => Promise<Result>): Promise<Result> {
      const span = tracing.start({
        name: `transaction ${database}`,
        kind: 'internal',
        parent,
        attributes: { 'db.system.name': 'mongodb', 'db.namespace': database, 'db.operation.name': 'transaction' },
      });
      try {
        return await span.run(() => transaction(span.context));
      } catch (error) {
        span.fail(errorTypeOf(error));
        throw error;
      } finally {
        span.end();
      }
    },
  };
}
