import { consoleService } from '@nightporter/console';
import { createInventoryWorker } from '@nightporter/inventory-worker';
import { createNotificationWorker } from '@nightporter/notification-worker';
import { ordersApi } from '@nightporter/orders-api';
import { createOrdersWorker } from '@nightporter/orders-worker';
import { createPointsWorker } from '@nightporter/points-worker';
import { relayService } from '@nightporter/relay-service';
import type { SettingTable } from '@nightporter/runtime';
import { createShippingWorker } from '@nightporter/shipping-worker';
import { createWarehouseWorker } from '@nightporter/warehouse-worker';

/** What is known of a service without starting it. */
export interface KnownService {
  readonly name: string;
  readonly description: string;
  readonly config: SettingTable;
}

/** Every service of services/ that runs until it is asked to stop, under the name of its folder. */
export const SERVICES: readonly KnownService[] = [
  ordersApi,
  relayService,
  consoleService,
  createInventoryWorker(),
  createOrdersWorker(),
  createPointsWorker(),
  createShippingWorker(),
  createNotificationWorker(),
  createWarehouseWorker(),
];
