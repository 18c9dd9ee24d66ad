/**
 * Writes the site, or into the directory that is named: the documentation and the API reference by TypeDoc, the app, and two examples that it
 * opens. `npm run build` comes before. Each link in it is relative, so that it can lie in any folder of a static host.
 */

import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Application, Converter, JSX, KindRouter } from 'typedoc'
import { root } from './bundled.mjs'

const [out = join(root, 'site')] = process.argv.slice(2).map(path => resolve(path))
/** Examples by their names on the site: a trial, and a run of checkpoints. */
const EXAMPLES = { 'mlp-vanishing': 'fixtures/trials/mlp-vanishing', run: 'fixtures/checkpoints/run' }
const LINKS = [
  ['app/index.html', 'The app'],
  ['app/index.html?open=../examples/mlp-vanishing/', 'Example: a training that does not learn'],
  ['app/index.html?open=../examples/run/', 'Example: checkpoints with a NaN'],
]
const MODULES = { index: 'trialscan', kernels: 'trialscan/kernels', tfjs: 'trialscan/tfjs', web: 'trialscan/web' }

process.chdir(root)
rmSync(out, { recursive: true, force: true })
const app = await Application.bootstrap({
  entryPoints: ['src/index.ts', 'src/kernels.ts', 'src/tfjs.ts', 'src/web/index.ts'],
  tsconfig: 'tsconfig.build.json',
  name: 'trialscan',
  includeVersion: true,
  readme: 'README.md',
  projectDocuments: [
    'docs/*.md',
    'docs/design/*.md',
    '{ARCHITECTURE,CHANGELOG,CONTRIBUTING,SECURITY}.md',
    '{examples,bench,fixtures}/README.md',
  ],
  out,
  router: 'site',
  excludeInternal: true,
  excludePrivate: true,
  disableSources: true,
  highlightLanguages: ['bash', 'console', 'html', 'json', 'jsonc', 'python', 'sql', 'typescript', 'javascript', 'yaml'],
  // Names of files are no addresses.
  markdownItOptions: { html: true, linkify: false },
  // Types that others only refer to are shown where they are used.
  validation: { notExported: false, invalidLink: true, invalidPath: true },
  treatValidationWarningsAsErrors: true,
})
/** The paths of documents in the clone, by which their pages are addressed. */
const fileOf = new Map()
app.renderer.defineRouter(
  'site',
  class extends KindRouter {
    getIdealBaseName(reflection) {
      return fileOf.get(reflection) ?? super.getIdealBaseName(reflection)
    }
  },
)
// In the lists they are called by their headings.
app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_, document) => {
  const [first] = document.content
  const [, title] = /^# (.+)\n/.exec(first?.kind === 'text' ? first.text : '') ?? []
  fileOf.set(document, document.name)
  if (document.name.startsWith('docs/design/')) document.frontmatter.group = 'Decisions'
  if (title !== undefined) document.name = title
})
app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
  for (const module of project.children ?? []) module.name = MODULES[module.name] ?? module.name
})
app.renderer.hooks.on('sidebar.begin', context =>
  JSX.createElement(
    'nav',
    { class: 'tsd-navigation', 'aria-label': 'The app' },
    ...LINKS.map(([href, text]) => JSX.createElement('a', { href: context.relativeURL(href) }, text)),
  ),
)
const project = await app.convert()
if (project === undefined) throw new Error('expected TypeDoc to read the sources; what it says stands above')
app.validate(project)
await app.generateOutputs(project)
if (app.logger.hasErrors() || app.logger.validationWarningCount > 0)
  throw new Error('expected a site without a dead link; what TypeDoc says stands above')

cpSync(join(root, 'dist/app'), join(out, 'app'), { recursive: true })
for (const [name, directory] of Object.entries(EXAMPLES)) {
  const to = join(out, 'examples', name)
  cpSync(join(root, directory), to, { recursive: true })
  const files = readdirSync(to, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  const paths = files.map(entry => join(entry.parentPath, entry.name).slice(to.length + 1).replaceAll('\\', '/'))
  writeFileSync(join(to, 'listing.txt'), `${paths.sort().join('\n')}\n`)
}
// Without it, GitHub's pages leave out what begins with an underscore.
writeFileSync(join(out, '.nojekyll'), '')
