import { consoleService } from '@nightporter/console';
import { createInventoryWorker } from '@nightporter/inventory-worker';
import { createNotificationWorker } from '@nightporter/notification-worker';
import { ordersApi } from '@nightporter/orders-api';
import { createOrdersWorker } from '@nightporter/orders-worker';
import { createPointsWorker } from '@nightporter/points-worker';
import { relayService } from '@nightporter/relay-service';
import { configurationSection } from '@nightporter/runtime';
import { createShippingWorker } from '@nightporter/shipping-worker';
import { createWarehouseWorker } from '@nightporter/warehouse-worker';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const INTRODUCTION = `# Configuration

Every service reads its settings from environment variables, checks all of them before it does anything else, and names every one that
is not usable together with the accepted range. \`node services/<service>/dist/main.js --help\` prints the same table. An empty variable
counts as absent. Secrets are never logged.

Written by \`npx vitest run --project unit scripts/src/configuration-docs.test.ts -u\` from the tables that the services themselves read.
`;

describe('docs/configuration.md', () => {
  it('says what the services read', async () => {
    const workers = [
      createInventoryWorker(),
      createOrdersWorker(),
      createPointsWorker(),
      createShippingWorker(),
      createNotificationWorker(),
      createWarehouseWorker(),
    ];
    const sections = [ordersApi, relayService, consoleService, ...workers].map((service) =>
      configurationSection(service, service.config),
    );
    const text = [
      INTRODUCTION,
      '<!-- prettier-ignore-start -->',
      '',
      ...sections,
      '<!-- prettier-ignore-end -->',
      '',
    ].join('\n');
    await expect(text).toMatchFileSnapshot(fileURLToPath(new URL('../../docs/configuration.md', import.meta.url)));
  });
});
