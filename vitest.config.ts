import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

/** The long part of a test file: see test/support/part.ts. */
const LONG = 'test/**/*.long.test.ts'

/** Files without which `npm test` still tells whether all works: what they add takes as long as all others together. */
const THOROUGH = [
  'test/{faults,fuzz,hostile}/**/*.test.ts',
  'test/{background,behind-damage,checkpoints-docs,deploy,digests,event-files,examples,examples-training,fixtures,large,lines,messages,modes-apart,one-by-one,pool,read-ahead,rules-docs,same-answers,saved-shape,small-floats,statistics,walk}.test.ts',
  'test/cli/{bench,check,ci,ci-docs,command,dump,follow,formats,friction,inputs,picture,remarks,repair,report,rule-invoker,sql,steps,summary,top,trials,unread}.test.ts',
  'test/compare/{diff,digest-lists,noise,ways,what-changed}.test.ts',
  'test/fleet/**/*.test.ts',
  'test/kernels/{array-engine,compare,tfrecord}.test.ts',
  'test/python/**/*.test.ts',
  'test/repair/{corruptions,entangled,fuzz,repair}.test.ts',
  'test/rules/{action,checkpoints,choice,evaluate,flow,loss}.test.ts',
  'test/storage/{s3-faults,s3-listing,s3-upload}.test.ts',
  'test/verify/{behind-damage,job,verify}.test.ts',
  'test/serve/{page,places,thousand}.test.ts',
  'test/table/table.test.ts',
  'test/view/{page,report,samples}.test.ts',
  'test/web/{app,bundlers,checkpoints,chromium}.test.ts',
  'test/write/{crash,record,s3-writer,tensorboard,tensorboard-import}.test.ts',
]

/** `npm test` runs the first, `npm run test:all` all three. */
export default defineConfig({
  test: {
    maxWorkers: '100%',
    projects: [
      project('quick', ['test/**/*.test.ts'], [LONG, ...THOROUGH]),
      project('thorough', THOROUGH, [LONG]),
      project('long', [LONG], []),
    ],
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
      // What was built is loaded as it is, but for the module of which a test replaces an import (test/rules/registry.test.ts).
      server: { deps: { external: [/\/dist\/(?!rules\/registry\.js)/] } },
    },
  }
}
