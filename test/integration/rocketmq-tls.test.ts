import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server } from 'node:tls';
import { createPublisher, preflightTopic } from '@nightporter/rocketmq';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { publishRequest } from './rocketmq-samples.js';

const OPENSSL = process.env['OPENSSL'] ?? 'openssl';
const folder = mkdtempSync(join(tmpdir(), 'nightporter-tls-'));
const keyFile = join(folder, 'key.pem');
const certificateFile = join(folder, 'certificate.pem');

/** A certificate of its own for 127.0.0.1; false where this machine cannot make one. */
function makeCertificate(): boolean {
  const subject = ['-subj', '/CN=nightporter-test', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', keyFile, '-out', certificateFile];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  try {
    execFileSync(OPENSSL, ['req', '-x509', ...key, '-days', '1', ...subject, ...files], { stdio: 'ignore' });
    return true;
  } catch (error) {
    process.stderr.write(`TLS is not tested: openssl cannot make a certificate here (${String(error)})\n`);
    return false;
  }
}

describe.skipIf(!makeCertificate())('Over TLS', () => {
  let server: Server;
  let through: { endpoints: string; alwaysUseEndpoints: true };

  beforeAll(async () => {
    const [host = '', port = ''] = sharedStack().rocketmqEndpoints.split(':');
    const identity = { key: readFileSync(keyFile), cert: readFileSync(certificateFile), ALPNProtocols: ['h2'] };
    server = createServer(identity, (socket) => {
      const upstream = connect({ host, port: Number(port) });
      for (const side of [socket, upstream]) {
        side.on('error', () => side.destroy());
        side.on('close', () => {
          socket.destroy();
          upstream.destroy();
        });
      }
      socket.pipe(upstream).pipe(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address() as AddressInfo;
    through = { endpoints: `127.0.0.1:${address.port}`, alwaysUseEndpoints: true };
  });

  afterAll(async () => {
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  });

  it('events are sent to a proxy whose certificate is trusted', async () => {
    const topic = await createTopic({ name: uniqueName('tls') });
    const tls = { rootCertificates: readFileSync(certificateFile) };
    expect(await preflightTopic({ ...through, tls, topic })).toEqual({ topic, queueCount: 8 });
    const publisher = await createPublisher({ ...through, tls, topics: [topic] });
    await expect(publisher.publish(publishRequest({ topic }))).resolves.toHaveProperty('messageId');
    await publisher.close();
  });

  it('nothing is sent to a proxy whose certificate is not trusted', async () => {
    const topic = await createTopic({ name: uniqueName('tls') });
    const publisher = await createPublisher({ ...through, tls: true, topics: [topic] });
    const refused = publisher.publish(publishRequest({ topic }));
    await expect(refused).rejects.toMatchObject({ failure: 'transient', answered: true });
    await publisher.close();
  });
});
