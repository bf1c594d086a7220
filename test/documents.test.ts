/** The documents hold together: links and anchors lead somewhere, settings are all told and all real, paths exist. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import t from 'tap'
import { anchorsOf } from '../scripts/support/documents/render-document.ts'
import { withParts } from '../scripts/support/reference/markdown-table.ts'
import { referenceParts } from '../scripts/support/reference/reference-pages.ts'
import { listSettings } from '../src/server/settings/config.ts'
import { runProgram, skipWithout } from './support/programs.ts'
import { PROJECT_ROOT } from './support/vectors.ts'

const FOLDERS = ['docs', 'bench', 'deploy', 'kotlin', 'swift']

interface Document {
  /** From the project's folder. */
  readonly name: string
  readonly text: string
}

const documents: readonly Document[] = [
  ...readdirSync(PROJECT_ROOT).filter(isDocument),
  ...FOLDERS.flatMap(folder => filesIn(folder).filter(isDocument)),
].map(name => ({ name, text: read(name) }))

function isDocument(name: string): boolean {
  return name.endsWith('.md')
}

function filesIn(folder: string): string[] {
  const path = join(PROJECT_ROOT, folder)
  if (!existsSync(path)) return []
  return readdirSync(path, { recursive: true, encoding: 'utf8' }).map(name => join(folder, name))
}

function read(name: string): string {
  return readFileSync(join(PROJECT_ROOT, name), 'utf8')
}

/** Without its blocks of code. */
function proseOf(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```$/gm, '')
}

/** The anchors of a page's headings, as hosts of repositories make them. */
function anchorsIn(text: string): ReadonlySet<string> {
  return new Set(anchorsOf([...proseOf(text).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading!)))
}

function faultOf(from: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#')
  const name = path === '' ? from : relative('.', join(dirname(from), path))
  if (name.startsWith('..') || !existsSync(join(PROJECT_ROOT, name))) return 'leads nowhere'
  if (anchor === undefined || !isDocument(name)) return undefined
  return anchorsIn(read(name)).has(anchor) ? undefined : 'has no such heading'
}

t.test('every link between documents leads to a file, and to a heading of it', async t => {
  const links = documents.flatMap(({ name, text }) =>
    [...proseOf(text).matchAll(/\]\(([^)\s]+)\)|\bsrc(?:set)?="([^"\s]+)"/g)].map(([, link, source]) => ({
      name,
      target: (link ?? source)!,
    })),
  )
  const own = links.filter(({ target }) => !/^[a-z]+:/.test(target))
  t.ok(own.length > 50, `${own.length} links`)
  t.same(
    own.flatMap(({ name, target }) => {
      const fault = faultOf(name, target)
      return fault === undefined ? [] : [`${name}: ${target} ${fault}`]
    }),
    [],
  )
})

/** Pages of `docs` that people write; the tables of `docs/reference` are printed from the code. */
const written = documents.filter(({ name }) => /^docs\/(?!reference\/)/.test(name))
/** Not counted: an answer to a list of requirements, and two pages that lawyers and moderators read. */
const UNCOUNTED = new Set(['docs/check/asvs.md', 'docs/run/moderation.md', 'docs/run/privacy.md'])
const WORDS_MAX = 45_000

t.test('the written pages stay within their words', async t => {
  const words = written
    .filter(({ name }) => !UNCOUNTED.has(name))
    .map(
      ({ text }) =>
        proseOf(text)
          .replaceAll(/<!--[\s\S]*?-->/g, '')
          .match(/\S+/g)?.length ?? 0,
    )
    .reduce((sum, count) => sum + count)
  t.ok(words <= WORDS_MAX, `${words} words, at most ${WORDS_MAX}`)
  const lines = read('README.md').trimEnd().split('\n').length
  t.ok(lines <= 120, `README.md has ${lines} lines, at most 120`)
})

t.test('the index of the documents lists every page', async t => {
  const index = read('docs/README.md')
  const pages = documents.map(({ name }) => name).filter(name => name.startsWith('docs/'))
  const unlisted = pages.filter(
    name => name !== 'docs/README.md' && !index.includes(`](${name.slice('docs/'.length)})`),
  )
  t.same(unlisted, [])
})

t.test('each written page opens with what its reader can do after it', async t => {
  const silent = written.filter(
    ({ name, text }) => name !== 'docs/README.md' && !/^# .+\n+After this page,? /.test(text),
  )
  t.same(
    silent.map(({ name }) => name.slice('docs/'.length, -'.md'.length)),
    [],
    'the paragraph after the title begins "After this page you can …"',
  )
})

/** Languages that readers type or run. Samples of output need no comment. */
const RUN_BY_READERS =
  /^ *```(console|sh|ts|tsx|js|python|go|kotlin|swift|sql|yaml|ini|http|html|dockerfile)\b/

/** The faults of one page: a block without a comment before it, or a test that is not there or does not name the page. */
function uncommentedBlocks(page: string, text: string): readonly string[] {
  const lines = text.split('\n')
  const starts = [...lines.keys()].filter(at => RUN_BY_READERS.test(lines[at]!))
  return starts.flatMap(at => {
    const [, kind, said = ''] = /^ *<!-- (run|not run): (.+) -->$/.exec(lines[at - 1] ?? '') ?? []
    const fault =
      kind === 'run' ? faultOfTest(page, said, lines[at]!) : kind === undefined ? 'has no comment' : undefined
    return fault === undefined ? [] : [`docs/${page}.md:${at + 1} ${fault}`]
  })
}

function faultOfTest(page: string, test: string, fence: string): string | undefined {
  if (!/^test\/.+\.test\.ts$/.test(test) || !existsSync(join(PROJECT_ROOT, test)))
    return `${test} is not there`
  // Units of every page are read here, see below.
  if (fence.trim() === '```ini' && test === 'test/documents.test.ts') return undefined
  return read(test).includes(`${basename(page)}.md`) ? undefined : `${test} does not name ${page}.md`
}

t.test('each block that readers run says which test runs it, or why none does', async t => {
  const faults = written.flatMap(({ name, text }) => {
    const page = name.slice('docs/'.length, -'.md'.length)
    return uncommentedBlocks(page, text)
  })
  t.same(faults, [])
})

t.test('a block without its comment, and one whose test knows nothing of it, are found', async t => {
  const block = '```ts\nrun()\n```\n'
  t.match(uncommentedBlocks('start/first-call', block), [/first-call\.md:1 has no comment$/])
  t.same(uncommentedBlocks('start/first-call', `<!-- not run: needs a phone -->\n${block}`), [])
  const named = (test: string) => uncommentedBlocks('start/first-call', `<!-- run: ${test} -->\n${block}`)
  t.match(named('test/nothing.test.ts'), [/is not there/])
  t.match(named('test/prose.test.ts'), [/does not name start\/first-call\.md/])
  t.same(named('test/flows/first-call.test.ts'), [])
})

const settings = listSettings().map(({ name }) => name)

t.test('the reference of settings is what `callsign config reference` prints', async t => {
  const callsign = join(PROJECT_ROOT, 'dist/scripts/callsign.js')
  const { stdout } = await runProgram(process.execPath, [callsign, 'config', 'reference'])
  const [, printed] = /^```text\n(NAME [\s\S]*?)^```$/m.exec(read('docs/reference/settings.md')) ?? []
  t.equal(printed, stdout, 'if not, copy it there')
})

t.test('every variable that a document names is one that something reads', async t => {
  const sources = [...['src', 'test', 'bench', 'scripts'].flatMap(filesIn)]
    .filter(name => name.endsWith('.ts') && name !== 'test/documents.test.ts')
    .map(read)
    .join('\n')
  const mentioned = new Set(sources.match(/\b(?:CALLSIGN|KT|VRF)_[A-Z_]+[A-Z]\b/g))
  const known = new Set([...settings, ...mentioned])
  const named = documents.flatMap(({ name, text }) =>
    (text.match(/\b(?:CALLSIGN|KT|VRF)_[A-Z_]+[A-Z]\b/g) ?? []).map(variable => ({ name, variable })),
  )
  t.ok(named.length > 100)
  const strangers = named.filter(
    ({ variable }) => !known.has(variable.replace(/_FILE$/, '')) && !known.has(variable),
  )
  t.same([...new Set(strangers.map(({ name, variable }) => `${name}: ${variable}`))], [])
})

/** Files that an operator puts there, with what is theirs. */
const MADE_BY_OPERATORS = new Set([
  'deploy/turnserver.conf',
  'deploy/tls',
  'deploy/callsign.env',
  'deploy/secrets',
])

t.test('every path of the repository that a document names is there', async t => {
  const named = documents.flatMap(({ name, text }) => {
    const codes = [...text.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!)
    const paths = codes.filter(code =>
      /^(?:src|actors|test|docs|bench|scripts|web|proto|deploy|\.ci)\/[\w./-]+$/.test(code),
    )
    // The built ones, also in commands.
    const built = [...text.matchAll(/\bdist\/((?:src|scripts|bench|test)\/[\w./-]+)\.js\b/g)]
    return [...paths, ...built.map(([, path]) => `${path}.ts`)].map(path => ({ name, path }))
  })
  t.ok(named.length > 50, `${named.length} paths`)
  const missing = named.filter(
    ({ path }) => !MADE_BY_OPERATORS.has(path) && !existsSync(join(PROJECT_ROOT, path)),
  )
  t.same([...new Set(missing.map(({ name, path }) => `${name}: ${path}`))], [])
})

const ANALYZE = '/usr/bin/systemd-analyze'

t.test(
  'units have sections and keys that systemd knows',
  { skip: skipWithout([ANALYZE], 'systemd') },
  async t => {
    const printed = documents.flatMap(({ text }) => [...text.matchAll(/^```ini\n([\s\S]*?)^```$/gm)])
    const shipped = filesIn('deploy').filter(name => /\.(service|timer)$/.test(name))
    t.ok(printed.length > 0 && shipped.length > 0)
    const units = Object.fromEntries([
      ...printed.map(([, unit], at) => [`printed-${at}.service`, unit!]),
      ...shipped.map(name => [basename(name), read(name)]),
    ])
    const folder = t.testdir(units)
    const paths = Object.keys(units).map(name => join(folder, name))
    const { stderr } = await runProgram(ANALYZE, ['verify', ...paths])
    t.same(
      stderr.split('\n').filter(line => /unknown|ignoring/i.test(line)),
      [],
    )
  },
)

t.test('a link that leads nowhere, or to no heading, is found', async t => {
  t.equal(faultOf('README.md', 'docs/nothing.md'), 'leads nowhere')
  t.equal(faultOf('docs/protocol/accounts.md', 'calls.md#nothing'), 'has no such heading')
  t.equal(faultOf('docs/protocol/accounts.md', '../../README.md'), undefined)
  t.same(
    [...anchorsIn("# A call's key\n## Two, 2\n## Two, 2\n```\n# no\n```\n")],
    ['a-calls-key', 'two-2', 'two-2-1'],
  )
})

t.test(
  'the reference has what the code knows of operations, events, errors, limits, settings and tables',
  async t => {
    const parts = referenceParts()
    t.same(
      Object.keys(parts)
        .map(name => `docs/reference/${name}`)
        .toSorted(),
      filesIn('docs/reference').toSorted(),
    )
    for (const [name, printed] of Object.entries(parts)) {
      const page = read(`docs/reference/${name}`)
      t.ok(page === withParts(page, printed), `${name}: run \`node dist/scripts/support/write-reference.js\``)
    }
  },
)
