/** Vite finds both files by itself. */

import { build } from 'vite'

const [source, out] = process.argv.slice(2)
await build({
  root: source,
  configFile: false,
  base: './',
  logLevel: 'warn',
  build: {
    outDir: out,
    target: 'es2022',
    rollupOptions: { input: `${source}/app.js`, output: { entryFileNames: 'app.js' } },
  },
})
