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
    },
  }
}
