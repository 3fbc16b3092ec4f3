import { brokerNotAsked, doctor, examineBroker, type BrokerProbe } from '@nightporter/ledger';
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod';
import { answers } from './answers.js';
import type { Operations } from './operations.js';
import * as requests from './requests.js';

export interface DoctorOptions {
  readonly operations: Operations;
  /** Null: none is named. */
  readonly broker: BrokerProbe | null;
  readonly brokerRetentionMs: number;
}

/** What is wrong with databases and broker. */
export const doctorRoute: FastifyPluginCallbackZod<DoctorOptions> = (
  app,
  { broker, brokerRetentionMs, operations },
  done,
) => {
  app.get(
    '/doctor',
    {
      schema: {
        tags: ['questions'],
        summary: 'What is wrong with the deployment, and what mends it',
        querystring: requests.doctorQuery,
        response: answers.findings,
      },
    },
    async ({ query: { handlerMs, topics, transactionMs } }) => {
      const limits = { brokerRetentionMs, handlerMs, transactionMs };
      const { findings, registered } = await doctor(await operations.deployment(), operations.client, limits);
      const atBroker =
        broker === null
          ? [brokerNotAsked('ROCKETMQ_ENDPOINTS of the console is not set')]
          : await examineBroker(broker, { registered, topics });
      return { findings: [...findings, ...atBroker] };
    },
  );
  done();
};
