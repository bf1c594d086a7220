/** The documents as the build made them: every page is served, leads nowhere that is not there, and runs no script of its own. */

import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import t from 'tap'
import { anchorsOf } from '../../scripts/support/documents/render-document.ts'
import { shownDocuments } from '../../scripts/support/documents/shown-documents.ts'
import { apiPageRoutes } from '../../src/operations/console/api-page.ts'
import { DOCUMENTS_FOLDER, documentRoutes } from '../../src/operations/console/documents.ts'
import { pageRoutes } from '../../src/operations/console/pages.ts'
import type { HttpAnswer, HttpRequest } from '../../src/transport/route.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const routes = documentRoutes()
const answers = new Map(routes.map(route => [route.path, route.handle({} as HttpRequest) as HttpAnswer]))
const pages = new Map(
  [...answers]
    .filter(([, { contentType }]) => contentType.startsWith('text/html'))
    .map(([path, { body }]) => [path, Buffer.from(body as Uint8Array).toString()]),
)
const served = new Set([...routes, ...apiPageRoutes(), ...pageRoutes()].map(({ path }) => path))

function idsOf(page: string): ReadonlySet<string> {
  return new Set(Array.from(page.matchAll(/ id="([^"]+)"/g), ([, id]) => id!))
}

t.test('every link and picture of a page leads to a page, and to a heading of it', async t => {
  const links = [...pages].flatMap(([from, page]) =>
    Array.from(page.matchAll(/ (?:href|src)="([^"]+)"/g), ([, target]) => ({ from, target: target! })),
  )
  const faults = links
    .filter(({ target }) => !/^[a-z]+:/.test(target))
    .filter(({ from, target }) => {
      const [path = '', anchor] = target.split('#')
      const page = pages.get(path === '' ? from : path)
      if (page === undefined) return !served.has(path)
      return anchor !== undefined && !idsOf(page).has(anchor)
    })
  t.same(
    faults.map(({ from, target }) => `${from}: ${target}`),
    [],
  )
  t.ok(links.length > 2_000, `${links.length} links`)
  t.ok(pages.size > 30, `${pages.size} pages`)
})

t.test('pages have no script or style of their own, and no comment', async t => {
  for (const [path, page] of pages) {
    t.notMatch(page, /<[^>]*(?: style| on\w+)=|<style|<!--|<script(?![^>]* src=)/, path)
    t.match(page, /<h1 id=/, path)
  }
})

t.test('each page is in the list of all, marked where one is, and leads to its neighbours', async t => {
  for (const [path, page] of pages) {
    const current = [...page.matchAll(/href="([^"]+)" aria-current="page"/g)].map(([, at]) => at)
    t.same(current, path === '/docs' ? [] : [path])
    t.match(page, /rel="(?:next|prev)"/, path)
  }
})

t.test('the index has every document, with a line about it', async t => {
  const index = readFileSync(join(PROJECT_ROOT, 'docs/README.md'), 'utf8')
  const { sections } = shownDocuments(PROJECT_ROOT)
  const missing = sections
    .flatMap(({ documents }) => documents)
    .filter(({ name }) => !index.includes(`](${relative('docs', name)}): `))
  t.same(
    missing.map(({ name }) => name),
    [],
  )
})

t.test('the search has every heading of every page, under an address that is there', async t => {
  const { body } = answers.get('/docs/search.json')!
  const passages = JSON.parse(Buffer.from(body as Uint8Array).toString()) as { at: string; text: string }[]
  const missing = passages.filter(({ at }) => {
    const [path = '', anchor = ''] = at.split('#')
    return !idsOf(pages.get(path) ?? '').has(anchor)
  })
  t.same(missing, [])
  t.equal(new Set(passages.map(({ at }) => at)).size, passages.length)
  t.notMatch(body, /<!-- (?:not )?run/)
})

t.test('the image is built with every document', async t => {
  const { index, sections } = shownDocuments(PROJECT_ROOT)
  const names = [index, ...sections.flatMap(({ documents }) => documents)].map(({ name }) => name)
  const rules = readFileSync(join(PROJECT_ROOT, '.dockerignore'), 'utf8')
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))
  const isLeftOut = (name: string) =>
    rules.reduce(
      (isOut, rule) => (covers(rule.replace('!', ''), name) ? !rule.startsWith('!') : isOut),
      false,
    )
  t.same(names.filter(isLeftOut), [])
  t.ok(isLeftOut('kotlin/pom.xml') && isLeftOut('local.env') && names.includes('kotlin/README.md'))
})

/** Whether a rule of `.dockerignore` is about the file or a folder that it lies in. */
function covers(rule: string, name: string): boolean {
  const form = new RegExp(`^${rule.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}(?:/|$)`)
  return form.test(name)
}

t.test('anchors are those of repositories’ hosts', async t => {
  t.same(anchorsOf(["A call's key", 'Two, 2', 'Two, 2', '`GET /user`', 'Grün und 呼']), [
    'a-calls-key',
    'two-2',
    'two-2-1',
    'get-user',
    'grün-und-呼',
  ])
})

t.test('documents that were not built are reported, not a fault', async t => {
  const [route, ...others] = documentRoutes(`${DOCUMENTS_FOLDER}-nowhere`)
  t.same([route?.path, others], ['/docs', []])
  t.throws(() => route?.handle({} as HttpRequest), { code: 'NOT_FOUND', message: /npm run build/ })
})
