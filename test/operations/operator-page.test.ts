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
  for (const name of [
    'web/operator/main.js',
    'web/base.css',
    'src/client/client.js',
    'src/backend/server-link.js',
  ])
    t.ok(loads.paths.has(`/operator/modules/${name}`), name)
})

t.test('nothing of the development surface is served beside it', async t => {
  const paths = operatorPageRoutes(LOG).map(({ path }) => path)
  const others = paths.filter(
    path =>
      !/^\/operator(?:$|\/modules\/(?:web\/(?:operator|shared|packages|base\.css|icon\.svg)|src\/))/.test(
        path,
      ),
  )
  t.same(others, [])
  t.same(
    paths.filter(path =>
      /\/(?:dev|console|simulator|client\/main|src\/(?:app|operations|server|store))\b/.test(path),
    ),
    [],
  )
  t.ok(paths.length > 40, `${paths.length} paths`)
})

t.test('the image has all of its files', async t => {
  const image = readFileSync(join(PROJECT_ROOT, 'Dockerfile'), 'utf8')
  const copied = [...image.matchAll(/^COPY --from=build \S+ (dist\/\S+)$/gm)].map(
    ([, folder]) => `${folder}/`,
  )
  const files = operatorPageRoutes(LOG)
    .filter(({ path }) => path !== '/operator')
    .map(({ path }) => path.replace('/operator/modules/', 'dist/'))
  t.same(
    files.filter(file => !copied.some(folder => file.startsWith(folder))),
    [],
  )
})

t.test('it asks its own server alone, and runs its own scripts alone', async t => {
  const url = await serve(t)
  for (const path of ['/operator', '/operator/modules/web/operator/main.js']) {
    const answer = await fetch(url + path)
    const policy = answer.headers.get('content-security-policy') ?? ''
    t.match(
      policy,
      /^default-src 'none'; .*connect-src 'self'; script-src 'self'(?: 'sha256-[\w+/]{43}=')?$/,
      path,
    )
    t.match(policy, /frame-ancestors 'none'/)
    t.notMatch(policy, /unsafe|http:|https:|\*/)
    t.equal(answer.headers.get('referrer-policy') ?? 'no-referrer', 'no-referrer')
  }
})

t.test('facts of the log can’t break out of the page', async t => {
  const page = await (await fetch(`${await serve(t)}/operator`)).text()
  t.match(page, '<main data-facts="{&quot;vkey&quot;:&quot;a&lt;b>\\&quot;c&amp;&quot;')
})
