/** webpack finds both files by itself. */

import { promisify } from 'node:util'
import webpack from 'webpack'

const [source, out] = process.argv.slice(2)
const stats = await promisify(webpack)({
  context: source,
  mode: 'production',
  entry: './app.js',
  output: { path: out, filename: 'app.js', publicPath: 'auto' },
  target: ['web', 'es2022'],
  performance: false,
  // Takes long, and changes nothing that the test is about.
  optimization: { minimize: false },
})
if (stats.hasErrors()) throw new Error(stats.toString())
