import { configurationSection } from '@nightporter/runtime';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { SERVICES } from './docker/services.js';

const INTRODUCTION = `# Configuration

Every service reads its settings from environment variables, checks all of them before it does anything else, and names every one that
is not usable together with the accepted range. \`node services/<service>/dist/main.js --help\` prints the same table. An empty variable
counts as absent. Secrets are never logged.

Written by \`npx vitest run --project unit scripts/src/configuration-docs.test.ts -u\` from the tables that the services themselves read.
`;

describe('docs/configuration.md', () => {
  it('says what the services read', async () => {
    const sections = SERVICES.map((service) => configurationSection(service, service.config));
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
