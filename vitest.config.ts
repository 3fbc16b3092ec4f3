import { defineConfig } from 'vitest/config';

/**
 * Workspace packages resolve to their sources, so that no build is needed before a test. `import` and `default` go without saying;
 * named here, they would reach Node's command line, and require() of a CommonJS package would get its dependencies' ES modules.
 */
const conditions = ['@nightporter/source', 'node'];
const shared = {
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  // Where the global set-up is loaded.
  environments: { __vitest__: { resolve: { conditions, externalConditions: conditions } } },
};

/** Everything that talks to a server shares one stack per run, started by the global set-up. */
function onTheStack(name: string, timeoutMs: number) {
  return {
    ...shared,
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      globalSetup: ['test/support/global-setup.ts'],
      testTimeout: timeoutMs,
      hookTimeout: timeoutMs,
      fileParallelism: false,
    },
  };
}

export default defineConfig({
  test: {
    reporters: ['./test/support/figures-reporter.ts', 'default'],
    projects: [
      {
        ...shared,
        test: {
          name: 'unit',
          include: ['packages/*/src/**/*.test.ts', 'services/*/src/**/*.test.ts', 'scripts/src/**/*.test.ts'],
          testTimeout: 20_000,
        },
      },
      onTheStack('conformance', 60_000),
      onTheStack('integration', 90_000),
      onTheStack('e2e', 180_000),
      onTheStack('faults', 180_000),
      // At full size a proof is many times as long.
      onTheStack('proof', process.env['NIGHTPORTER_PROOF'] === 'full' ? 3_600_000 : 900_000),
      {
        ...shared,
        // Each as its readers run it: on a stack of its own.
        test: {
          name: 'examples',
          include: ['docs/examples/*/src/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
