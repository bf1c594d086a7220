/** The operators' page as it was built: all that it loads is there, and nothing of the development surface is. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { operatorPageRoutes } from '../../src/operations/operator-page.ts'
import { HttpServer } from '../../src/transport/http.ts'
import { loadsOf } from '../support/page-loads.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const LOG = { vkey: 'a<b>"c&', vrfPublicKey: 'key' }

async function serve(t: Test): Promise<string> {
  const server = new HttpServer({
    routes: operatorPageRoutes(LOG),
    onRefused: () => undefined,
    onFault: error => t.fail(String(error)),
  })
  t.teardown(() => server.close())
  return `http://127.0.0.1:${await server.listen('127.0.0.1', 0)}`
}

t.test('the page and all that it loads is there', async t => {
  const loads = await loadsOf(await serve(t), '/operator')
  t.same(loads.failures, [])
  for (const name of ['operator/main.js', 'operator/style.css', 'base.css', 'icon.svg'])
    t.ok(loads.paths.has(`/operator/pages/${name}`), name)
})

t.test('nothing of the development surface is served beside it', async t => {
  const paths = operatorPageRoutes(LOG).map(({ path }) => path)
  const own = /^\/operator(?:$|\/pages\/(?:operator|chunks|base\.css|icon\.svg))/
  t.same(
    paths.filter(path => !own.test(path)),
    [],
  )
  const scripts = operatorPageRoutes(LOG).filter(({ path }) => path.endsWith('.js'))
  for (const { path } of scripts) {
    const text = await (await fetch((await serve(t)) + path)).text()
    t.notMatch(text, /\/dev\/(?!null)/, path)
  }
})

t.test('the image has all of its files', async t => {
  const image = readFileSync(join(PROJECT_ROOT, 'Dockerfile'), 'utf8')
  const copied = [...image.matchAll(/^COPY --from=build \S+ (dist\/\S+)$/gm)].map(
    ([, folder]) => `${folder}/`,
  )
  const files = operatorPageRoutes(LOG)
    .filter(({ path }) => path !== '/operator')
    .map(({ path }) => path.replace('/operator/pages/', 'dist/pages/operator/'))
  t.same(
    files.filter(file => !copied.some(folder => file.startsWith(folder))),
    [],
  )
})

t.test('it asks its own server alone, and runs its own scripts alone', async t => {
  const url = await serve(t)
  for (const path of ['/operator', '/operator/pages/operator/main.js']) {
    const answer = await fetch(url + path)
    const policy = answer.headers.get('content-security-policy') ?? ''
    t.match(policy, /^default-src 'none'; .*connect-src 'self'; script-src 'self'$/, path)
    t.match(policy, /frame-ancestors 'none'/)
    t.notMatch(policy, /unsafe|http:|https:|\*/)
    t.equal(answer.headers.get('referrer-policy') ?? 'no-referrer', 'no-referrer')
  }
})

t.test('facts of the log can’t break out of the page', async t => {
  const page = await (await fetch(`${await serve(t)}/operator`)).text()
  t.match(page, '<main data-facts="{&quot;vkey&quot;:&quot;a&lt;b>\\&quot;c&amp;&quot;')
})
