/** The page of operations: what its answers allow a browser, and that a browser shows the document with no more. */

import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import Type from 'typebox'
import { openApiRoute } from '../../src/api/documents/openapi.ts'
import { operationWithBody } from '../../src/api/table/operation.ts'
import { apiPageRoutes, SWAGGER_UI_FILES } from '../../src/operations/console/api-page.ts'
import { HttpServer } from '../../src/transport/http.ts'
import { statusOf } from '../../src/transport/problem.ts'
import { runProgram, skipWithout } from '../support/programs.ts'

const CHROMIUM = '/usr/bin/chromium'
const SWAGGER_UI = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/package.json')))

async function serve(t: Test, folder: string): Promise<string> {
  const sayHello = operationWithBody(Type.Object({ name: Type.String() }), {
    id: 'sayHello',
    method: 'POST',
    path: '/app/api/hello',
    tag: 'meta',
    summary: 'Says hello to a stranger',
    access: 'public',
    replies: { 204: null },
    codes: [],
    handle: () => ({ status: 204 }),
  })
  const document = () => ({
    operations: [sayHello],
    lookupsNeedToken: false,
    version: '1.2.3',
    serverUrl: 'https://elsewhere',
    statusOf,
  })
  const server = new HttpServer({
    routes: [...apiPageRoutes(folder), openApiRoute(document)],
    onRefused: () => undefined,
    onFault: () => undefined,
  })
  const port = await server.listen('127.0.0.1', 0)
  t.teardown(() => server.close())
  return `http://127.0.0.1:${port}`
}

t.test('the page and all its files are served, and may load nothing from elsewhere', async t => {
  const url = await serve(t, SWAGGER_UI)
  for (const path of ['', '/', ...Object.keys(SWAGGER_UI_FILES).map(name => `/${name}`)]) {
    const answer = await fetch(`${url}/docs/api${path}`)
    const policy = answer.headers.get('content-security-policy') ?? ''
    t.equal(answer.status, 200, path)
    t.ok((await answer.arrayBuffer()).byteLength > 40, `${path} is not empty`)
    t.match(policy, /default-src 'none'/, path)
    t.notMatch(policy, /unsafe|http:|https:|\*/, path)
  }
})

t.test('the page has no script of its own', async t => {
  const page = await (await fetch(`${await serve(t, SWAGGER_UI)}/docs/api`)).text()
  const scripts = [...page.matchAll(/<script([^>]*)>([^<]*)</g)]
  t.same(
    scripts.map(([, attributes, text]) => [attributes, text]),
    [
      [' src="/docs/api/swagger-ui-bundle.js"', ''],
      [' type="module" src="/dev/pages/api/main.js"', ''],
    ],
  )
  t.notMatch(page, /style=| on\w+=/)
})

t.test('files that were not built are reported, not a fault', async t => {
  const url = await serve(t, join(SWAGGER_UI, 'nowhere'))
  const answer = await fetch(`${url}/docs/api/swagger-ui.css`)
  t.equal(answer.status, 404)
  t.match(await answer.json(), { code: 'NOT_FOUND', detail: /npm run build/ })
})

t.test(
  'a browser shows the document, and its policy stops nothing that the page needs',
  { skip: skipWithout([CHROMIUM], 'chromium') },
  async t => {
    const url = await serve(t, SWAGGER_UI)
    const profile = t.testdir({})
    const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run']
    const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync']
    const args = [CHROMIUM, ...flags, ...quiet, `--user-data-dir=${profile}`, '--enable-logging=stderr']
    const { stdout, stderr } = await runProgram('/usr/bin/timeout', [
      '60',
      ...args,
      '--virtual-time-budget=10000',
      '--dump-dom',
      `${url}/docs/api`,
    ])
    t.match(stdout, /Says hello to a stranger/)
    t.match(stdout, /1\.2\.3/)
    t.notMatch(stderr, /Content Security Policy|Uncaught/)
  },
)
