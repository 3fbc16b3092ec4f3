import { isIPv4, isIPv6 } from 'node:net';
import { NightporterError } from '@nightporter/protocol';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * The target that gRPC dials for the addresses of a proxy. The client itself joins several addresses by commas, which gRPC reads
 * as one host name; here, several IP addresses become one target with fail-over between them.
 */
export function grpcTarget(addresses: readonly Address[]): string {
  const [first] = addresses;
  if (first === undefined) throw invalid('', 'it has no address');
  if (addresses.length === 1 && !isIPv6(first.host)) return `${first.host}:${first.port}`;
  if (addresses.every(({ host }) => isIPv4(host))) {
    return `ipv4:${addresses.map(({ host, port }) => `${host}:${port}`).join(',')}`;
  }
  if (addresses.every(({ host }) => isIPv6(host))) {
    return `ipv6:${addresses.map(({ host, port }) => `[${host}]:${port}`).join(',')}`;
  }
  throw invalid(
    addresses.map(({ host, port }) => `${host}:${port}`).join(';'),
    'several addresses must be IP addresses of one family; for several proxies give one name that resolves to all of them',
  );
}

/** @throws NP_CONFIG_INVALID for endpoints that the client would misread (it takes port 80 for whatever it cannot parse). */
export function assertEndpoints(endpoints: string): void {
  const addresses = endpoints.split(';').map((endpoint) => {
    const match = /^([A-Za-z0-9._-]+):([0-9]{1,5})$/.exec(endpoint);
    const host = match?.[1];
    const port = Number(match?.[2]);
    if (host === undefined || port < 1 || port > 65_535) {
      throw invalid(endpoints, `'${endpoint}' is not host:port`);
    }
    return { host, port };
  });
  grpcTarget(addresses);
}

function invalid(endpoints: string, why: string): NightporterError {
  return new NightporterError(
    'NP_CONFIG_INVALID',
    `RocketMQ endpoints are '${endpoints}': ${why}. Accepted: host:port of the gRPC proxy, several IPv4 addresses joined by ';'.`,
  );
}
