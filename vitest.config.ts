import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

/** Tests that take long; `npm test` leaves them out, `npm run test:all` does not. */
const LONG = 'test/**/*.long.test.ts'

export default defineConfig({
  test: {
    maxWorkers: '100%',
    projects: [project('quick', ['test/**/*.test.ts'], [LONG]), project('long', [LONG], [])],
  },
})

function project(name: string, include: string[], exclude: string[]): TestProjectInlineConfiguration {
  return {
    test: {
      name,
      include,
      exclude,
      // For test/support/part.ts.
      provide: { isLong: name === 'long' },
      globalSetup: ['test/programs.ts'],
      setupFiles: ['test/setup.ts'],
      // Against what hangs; what is slow on a busy machine is not wrong.
      testTimeout: 180_000,
      hookTimeout: 180_000,
      pool: 'forks',
      // What was built is loaded as it is, but for the module of which a test replaces an import (test/rule/registry.test.ts).
      server: { deps: { external: [/\/dist\/(?!rule\/registry\.js)/] } },
    },
  }
}
