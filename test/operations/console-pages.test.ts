/** The pages of a development server as they were built: all that they load is there, and nothing else is. */

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { apiPageRoutes } from '../../src/operations/console/api-page.ts'
import { documentRoutes } from '../../src/operations/console/documents.ts'
import { pageRoutes } from '../../src/operations/console/pages.ts'
import { HttpServer } from '../../src/transport/http.ts'
import { loadsOf } from '../support/page-loads.ts'
import { sendRaw } from '../support/raw-http.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const PAGES = ['/dev', '/dev/client', '/docs/events']

async function serve(t: Test, built?: string): Promise<{ url: string; port: number }> {
  const server = new HttpServer({
    routes: pageRoutes(built),
    onRefused: () => undefined,
    onFault: error => t.fail(String(error)),
  })
  t.teardown(() => server.close())
  const port = await server.listen('127.0.0.1', 0)
  return { url: `http://127.0.0.1:${port}`, port }
}

t.test('each page and all that it loads is there', async t => {
  const { url } = await serve(t)
  for (const path of PAGES) {
    const loads = await loadsOf(url, path)
    t.same(loads.failures, [], path)
    t.ok(loads.paths.has('/dev/pages/base.css'), path)
    t.ok(
      [...loads.paths].some(loaded => loaded.endsWith('/main.js')),
      path,
    )
  }
})

t.test('a page may load nothing from elsewhere, and no script that is not its own', async t => {
  const { url } = await serve(t)
  for (const path of [...PAGES, '/dev/pages/base.css', '/dev/pages/client/main.js']) {
    const answer = await fetch(url + path)
    const policy = answer.headers.get('content-security-policy') ?? ''
    t.match(policy, /^default-src 'none'; style-src 'self'; .*; script-src 'self'$/, path)
    t.match(policy, /frame-ancestors 'none'/, path)
    t.notMatch(policy, /unsafe|http:|https:|\*/, path)
    t.equal(answer.headers.get('x-content-type-options'), 'nosniff', path)
  }
})

t.test('no page has a script or a style of its own', async t => {
  const { url } = await serve(t)
  for (const path of PAGES) {
    const page = await (await fetch(url + path)).text()
    t.notMatch(page, / style=| on\w+=|<style|<script(?![^>]* src=)/, path)
    t.notMatch(page, /<script[^>]*>[^<]/, path)
  }
})

t.test('nothing else of the project is served, however it is spelled', async t => {
  const { port } = await serve(t)
  const paths = [
    'src/main.js',
    'src/server/settings/config.js',
    'src/store/engine/lmdb-store.js',
    'src/operations/console/pages.js',
    'actors/calls/call-room.js',
    'scripts/keygen.js',
    'test/operations/console-pages.test.js',
    'package.json',
    'client/../../../src/main.js',
    'client/%2e%2e/%2e%2e/src/main.js',
    'client/..%2f..%2fsrc/main.js',
    'client//main.js',
    'client/',
    'client',
    'LICENCES',
    'console/main.ts',
    'console/main.js.map',
    '../operator/operator/main.js',
    'documents/docs.html',
    '../../package.json',
    '%2e%2e/%2e%2e/package.json',
    '/etc/passwd',
    'base.css%00.js',
  ]
  for (const path of paths) {
    const request = `GET /dev/pages/${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`
    t.match(await sendRaw(port, request), /^HTTP\/1\.1 404 /, path)
  }
})

t.test('no page stays empty because many tabs were opened', async t => {
  t.same(
    [...pageRoutes(), ...apiPageRoutes(), ...documentRoutes()].filter(({ isUncounted }) => !isUncounted),
    [],
  )
})

t.test('without the pages built, a missing page is not found, and no fault', async t => {
  const { url } = await serve(t, join(PROJECT_ROOT, 'test', 'vectors'))
  t.equal((await fetch(`${url}/dev`)).status, 200)
  t.equal((await fetch(`${url}/dev/pages/base.css`)).status, 404)
  t.equal((await fetch(`${url}/dev/pages/client/main.js`)).status, 404)
  t.equal((await fetch(`${url}/dev/callsign.js`)).status, 404)
})
