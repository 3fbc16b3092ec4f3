import type { BrokerProbe } from '@nightporter/ledger';
import { NightporterError } from '@nightporter/protocol';
import { preflightGroup, preflightTopic } from '@nightporter/rocketmq';
import { Option, type Command } from 'commander';

/** How the broker is reached, by the names that relay and workers have for it. */
export interface BrokerFlags {
  readonly rocketmqEndpoints?: string;
  readonly rocketmqAccessKey?: string;
  readonly rocketmqSecretKey?: string;
  readonly rocketmqTls: 'true' | 'false';
  readonly rocketmqAlwaysUseEndpoints: 'true' | 'false';
}

export function withBroker(command: Command): Command {
  const flag = (name: string, description: string): Option =>
    new Option(`--${name} <flag>`, description).choices(['true', 'false']).default('false');
  return command
    .addOption(
      new Option('--rocketmq-endpoints <host:port>', 'proxy of the broker; without it topics are not looked at').env(
        'ROCKETMQ_ENDPOINTS',
      ),
    )
    .addOption(
      new Option('--rocketmq-access-key <key>', 'where the broker asks for credentials').env('ROCKETMQ_ACCESS_KEY'),
    )
    .addOption(
      new Option(
        '--rocketmq-secret-key <key>',
        'goes with it; in the environment no other user of the machine reads it',
      ).env('ROCKETMQ_SECRET_KEY'),
    )
    .addOption(flag('rocketmq-tls', 'whether to speak TLS to the proxy').env('ROCKETMQ_TLS'))
    .addOption(
      flag(
        'rocketmq-always-use-endpoints',
        'whether to ask only there, whatever addresses the broker names: needed behind a port mapping',
      ).env('ROCKETMQ_ALWAYS_USE_ENDPOINTS'),
    );
}

/** Asks the broker as relay and workers do before they start; null where none is named. @throws NP_ACTION_INVALID for half a credential. */
export function brokerOf(flags: BrokerFlags): BrokerProbe | null {
  const connection = brokerConnectionOf(flags);
  if (connection === null) return null;
  return {
    topic: (topic) => preflightTopic({ ...connection, topic }),
    group: (reader) => preflightGroup({ ...connection, ...reader }),
  };
}

type Connection = Pick<
  Parameters<typeof preflightTopic>[0],
  'endpoints' | 'tls' | 'alwaysUseEndpoints' | 'credentials'
>;

/** An empty text counts as nothing, as it does in the environment of relay and workers. */
export function brokerConnectionOf(flags: BrokerFlags): Connection | null {
  const { rocketmqAccessKey: accessKey = '', rocketmqEndpoints: endpoints = '', rocketmqSecretKey = '' } = flags;
  if ((accessKey === '') !== (rocketmqSecretKey === ''))
    throw new NightporterError(
      'NP_ACTION_INVALID',
      'Half a credential of the broker is given; accepted: --rocketmq-access-key and --rocketmq-secret-key, or neither.',
    );
  if (endpoints === '') return null;
  return {
    endpoints,
    tls: flags.rocketmqTls === 'true',
    alwaysUseEndpoints: flags.rocketmqAlwaysUseEndpoints === 'true',
    ...(accessKey === '' ? {} : { credentials: { accessKey, accessSecret: rocketmqSecretKey } }),
  };
}
