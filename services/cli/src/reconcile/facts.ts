import type { AwardDocument } from '@nightporter/points-worker';
import type { ReservationDocument } from '@nightporter/inventory-worker';
import type { NotificationDocument } from '@nightporter/notification-worker';
import type { OrderDocument, PaymentDocument, RefundDocument } from '@nightporter/orders-api';
import type { ShipmentDocument } from '@nightporter/shipping-worker';
import type { OutboxStatus } from '@nightporter/contracts';

/** What every service says about one order. */
export interface OrderFacts {
  readonly order: OrderDocument;
  readonly payments: readonly PaymentDocument[];
  readonly refunds: readonly RefundDocument[];
  readonly reservation: ReservationDocument | null;
  readonly shipment: ShipmentDocument | null;
  readonly award: AwardDocument | null;
  /** The events that concern it, those of each aggregate by version. */
  readonly events: readonly EventFacts[];
  /** Its published events beside their rows in the warehouse; empty where the warehouse is not compared. */
  readonly landed: readonly LandedFacts[];
  /** What its customer is told; empty where that is not compared. */
  readonly notifications: readonly NotificationDocument[];
}

/** An event and what the groups that read it made of it. */
export interface EventFacts {
  readonly eventId: string;
  readonly eventType: string;
  readonly aggregateType: string;
  readonly version: number;
  readonly status: OutboxStatus;
  /** The number of the payment that it tells of, if any. */
  readonly transactionId: string | null;
  /**
   * Group → outcome in its inbox, the state in which it is parked, or `past` (the group has it behind it, and its record has expired). A group
   * that has none of these is not there.
   */
  readonly groups: Readonly<Record<string, string>>;
}

/** One event and one table of the warehouse. */
export interface LandedFacts {
  readonly eventId: string;
  readonly table: string;
  /** The digest of its row as it should be; null where the table has no row for events of its type. */
  readonly wanted: string | null;
  /** The digests of its rows as they are: one, when all is well. */
  readonly found: readonly string[];
  /** Whether it waits to be landed. */
  readonly isStaged: boolean;
}

/** Pieces of a product, or points of a customer, as kept and as they add up. */
export interface Sum {
  readonly of: string;
  readonly kept: number;
  readonly addsUpTo: number;
}

/** One place where two services, or a promise and its effect, disagree. */
export interface Difference {
  readonly orderId: string | null;
  readonly between: string;
  readonly detail: string;
  /**
   * The event at which the story of the order stopped, or that was committed together with what is missing or wrong; null where every event is
   * settled, so that an effect is wrong, and where no event tells of it.
   */
  readonly brokeAt: { readonly eventId: string; readonly eventType: string; readonly why: string } | null;
}

/** The groups of the example, by what they do. */
export interface GroupNames {
  readonly inventory: string;
  readonly shipping: string;
  readonly orders: string;
  readonly points: string;
  /** Only where the warehouse is compared. */
  readonly warehouse?: string;
  /** Only where it is compared what customers were told. */
  readonly notification?: string;
}
