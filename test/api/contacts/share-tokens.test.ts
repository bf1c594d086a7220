/** Share tokens as clients see them (contract 3.1), and the page behind their links. */

import { createHash } from 'node:crypto'
import decodeQR from 'qr/decode.js'
import t from 'tap'
import { type LandingSettings, landingRoutes } from '../../../src/api/contacts/landing.ts'
import { drawShareToken, qrImage } from '../../../src/api/contacts/share-tokens.ts'
import type { OperationRequest } from '../../../src/api/table/operation.ts'
import type { HttpAnswer, HttpRequest } from '../../../src/transport/route.ts'
import type { TestAnswer, TestUser } from '../../support/application.ts'
import { askById, befriend, people, shareTokenOf } from '../../support/contact-requests.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const DAY_MS = 86_400_000
const UNKNOWN = 'c_AAECAwQFBgcICQoLDA0ODw'

function resolve({ send }: TestApi, { token }: TestUser, text: string, address?: number[]) {
  const body = { token: text }
  return send('POST /app/api/share-token/resolve', { token, body, ...(address && { address }) })
}

function shortOf({ status, body }: TestAnswer): unknown[] {
  return [status, body?.code]
}

/** A scanner's text from the picture: the path is drawn, eight pixels for each module. */
function scan(svg: string): string {
  const size = Number(/viewBox="0 0 (\d+)/.exec(svg)?.[1])
  const scale = 8
  const pixels = new Uint8Array((size * scale) ** 2 * 4).fill(255)
  for (const [, x, y, width] of svg.matchAll(/M(\d+) (\d+)h(\d+)v1h-\d+z/g)) {
    for (let row = Number(y) * scale; row < (Number(y) + 1) * scale; row++) {
      for (let column = Number(x) * scale; column < (Number(x) + Number(width)) * scale; column++) {
        pixels.fill(0, (row * size * scale + column) * 4, (row * size * scale + column) * 4 + 3)
      }
    }
  }
  return decodeQR({ width: size * scale, height: size * scale, data: pixels })
}

t.test('a token is made with its link, and listed without itself', async t => {
  const api = await openTestApi(t)
  const [ann] = (await people(api, 'Ann')) as [TestUser]
  const { status, body } = await api.send('POST /app/api/share-token', { token: ann.token })
  t.equal(status, 201)
  const { token, id } = body
  const common = {
    id,
    createdAt: '2026-01-01T00:00:00.000Z',
    expiresAt: '2026-01-08T00:00:00.000Z',
    maxUses: 100,
    uses: 0,
  }
  t.same(body, {
    ...common,
    token,
    url: `https://callsign.example/c/${token}`,
    deepLink: `callsign://c/${token}`,
  })
  await api.world.advance(1)
  await shareTokenOf(api, ann, { expiresIn: 60, maxUses: 1, label: ' my\u200b\u202e card ' })
  const list = await api.send('GET /app/api/share-token', { token: ann.token })
  t.notOk(list.text.includes(token))
  t.match(list.body.items, [{ label: 'my card', maxUses: 1, expiresAt: '2026-01-01T00:01:00.001Z' }, {}])
  t.same(list.body.items[1], { ...common, last4: token.slice(-4) })
})

t.test('the terms of a token have bounds', async t => {
  const api = await openTestApi(t)
  const [ann] = (await people(api, 'Ann')) as [TestUser]
  const create = (body: object) => api.send('POST /app/api/share-token', { token: ann.token, body })
  const bad = [
    { expiresIn: 59 },
    { expiresIn: 365 * 86_400 + 1 },
    { maxUses: 0 },
    { maxUses: 1.5 },
    { label: 'a\n' },
    { label: '\u202e\u200b' },
  ]
  for (const body of bad)
    t.same(shortOf(await create(body)), [422, 'VALIDATION_FAILED'], JSON.stringify(body))
  t.equal((await create({ expiresIn: 365 * 86_400, maxUses: null, label: '' })).status, 201)
})

t.test('a token names its owner, and what one has with them', async t => {
  const api = await openTestApi(t)
  const [ann, bob, cy, di] = (await people(api, 'Ann', 'Bob', 'Cy', 'Di')) as [
    TestUser,
    TestUser,
    TestUser,
    TestUser,
  ]
  const { text } = await shareTokenOf(api, ann)
  const relation = async (user: TestUser) => (await resolve(api, user, text)).body.relation
  const { text: sent } = await resolve(api, bob, text)
  t.equal(sent, `{"token":"${text}","displayName":"Ann","relation":"none"}`)
  await befriend(api, ann, bob)
  await askById(api, cy, ann)
  await askById(api, ann, di)
  t.same(
    [await relation(ann), await relation(bob), await relation(cy), await relation(di)],
    ['self', 'contact', 'outgoing', 'incoming'],
  )
})

t.test('a revoked, expired or used token has ended, and after 30 days it never existed', async t => {
  const api = await openTestApi(t)
  const [ann, bob, cy] = (await people(api, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  const [revoked, used, expired] = [
    await shareTokenOf(api, ann),
    await shareTokenOf(api, ann, { maxUses: 1 }),
    await shareTokenOf(api, ann, { expiresIn: 60 }),
  ]
  const remove = (user: TestUser) =>
    api.send(`DELETE /app/api/share-token/${revoked.id}`, { token: user.token })
  t.same(shortOf(await remove(cy)), [404, 'SHARE_TOKEN_NOT_FOUND'])
  t.equal((await remove(ann)).status, 204)
  t.equal((await remove(ann)).status, 204)
  const body = { token: used.text }
  t.equal((await api.send('POST /app/api/friend-request/by-token', { token: bob.token, body })).status, 201)
  await api.world.advance(60_000)
  for (const { text } of [revoked, used, expired]) {
    t.same(shortOf(await resolve(api, cy, text)), [410, 'SHARE_TOKEN_EXPIRED'])
  }
  await api.world.advance(30 * DAY_MS)
  const dee = (await people(api, 'Dee'))[0]!
  for (const { text } of [revoked, used, expired]) {
    t.same(shortOf(await resolve(api, dee, text)), [404, 'SHARE_TOKEN_NOT_FOUND'])
  }
})

t.test('a text that is no token, and an id that is no id, are not found', async t => {
  const api = await openTestApi(t)
  const [ann] = (await people(api, 'Ann')) as [TestUser]
  for (const text of [UNKNOWN, '', 'c_', '42', 'x'.repeat(128)]) {
    t.same(shortOf(await resolve(api, ann, text)), [404, 'SHARE_TOKEN_NOT_FOUND'])
  }
  const answer = await api.send('DELETE /app/api/share-token/-1', { token: ann.token })
  t.same(shortOf(answer), [404, 'SHARE_TOKEN_NOT_FOUND'])
})

t.test(
  'ten unknown tokens an hour, then known ones are not told from them, also over a new start',
  async t => {
    const folder = t.testdir()
    let api = await openTestApi(t, { folder, rates: true })
    const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
    const { text } = await shareTokenOf(api, bob)
    const answers = await Promise.all(Array.from({ length: 12 }, () => resolve(api, ann, UNKNOWN)))
    t.same(
      answers.map(({ status }) => status),
      [...Array(10).fill(404), 429, 429],
    )
    await api.world.database.close()
    api = await openTestApi(t, { folder, rates: true })
    t.match(await resolve(api, ann, text), { status: 429, body: { code: 'RATE_LIMITED', retryIn: 360 } })
    const body = { token: text }
    const asking = await api.send('POST /app/api/friend-request/by-token', { token: ann.token, body })
    t.equal(asking.status, 429, 'by-token is no way around it')
    t.equal((await resolve(api, bob, text)).status, 200)
  },
)

t.test(
  '60 resolved tokens an hour for a user, also where a second user at the address has used theirs',
  async t => {
    const api = await openTestApi(t, { rates: true })
    const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
    const { text } = await shareTokenOf(api, bob)
    for (let count = 0; count < 60; count++) await resolve(api, ann, text, [10, 0, 0, count])
    t.match(await resolve(api, ann, text, [10, 0, 0, 77]), { status: 429, body: { scope: 'session' } })
    for (let count = 0; count < 60; count++) t.equal((await resolve(api, bob, text)).status, 200)
    t.match(await resolve(api, bob, text), { status: 429, body: { scope: 'session' } })
  },
)

t.test('20 live tokens, and 20 new ones a day', async t => {
  const api = await openTestApi(t, { rates: true })
  const [ann] = (await people(api, 'Ann')) as [TestUser]
  const create = () => api.send('POST /app/api/share-token', { token: ann.token, body: {} })
  const answers = await Promise.all(Array.from({ length: 21 }, create))
  t.same(answers.map(shortOf), [...Array(20).fill([201, undefined]), [409, 'SHARE_TOKEN_LIMIT']])
  const { id } = answers[0]!.body
  await api.send(`DELETE /app/api/share-token/${id}`, { token: ann.token })
  t.match(await create(), { status: 429, body: { code: 'RATE_LIMITED', retryIn: DAY_MS / 1000 / 20 } })
})

t.test('a scanner reads the URL in the picture of a token, which only its owner gets', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { text, id } = await shareTokenOf(api, ann)
  const deps = { ...api.stores, publicUrl: api.world.publicUrl }
  const drawn = async ({ userId }: TestUser, tokenId: string) => {
    const request = { params: [tokenId], requester: { userId }, nowMs: api.world.nowMs() }
    return drawShareToken.handle(deps, request as unknown as OperationRequest<unknown, unknown, 'session'>)
  }
  const reply = await drawn(ann, id)
  t.match(reply, { status: 200, contentType: 'image/svg+xml' })
  t.equal(scan(String(reply.body)), `https://callsign.example/c/${text}`)
  await t.rejects(drawn(bob, id), { code: 'SHARE_TOKEN_NOT_FOUND' })
  await t.rejects(drawn(ann, 'x'), { code: 'SHARE_TOKEN_NOT_FOUND' })
  await api.send(`DELETE /app/api/share-token/${id}`, { token: ann.token })
  await t.rejects(drawn(ann, id), { code: 'SHARE_TOKEN_EXPIRED' })
})

t.test('the picture has a white border of four modules, and nothing from elsewhere', async t => {
  const svg = qrImage('https://callsign.example/c/x')
  const size = Number(/viewBox="0 0 (\d+)/.exec(svg)?.[1])
  const runs = [...svg.matchAll(/M(\d+) (\d+)h(\d+)v1/g)].map(run => run.slice(1).map(Number))
  t.ok(runs.length > 100)
  t.ok(runs.every(([x, y, width]) => x! >= 4 && y! >= 4 && x! + width! <= size - 4 && y! < size - 4))
  t.notMatch(svg, /script|href|url\(/)
})

const LANDING = {
  appName: 'Callsign <b>',
  deepLinkScheme: 'callsign',
  appleAppIds: ['ABCDE12345.com.example.app'],
  androidApps: [{ packageName: 'com.example.app', fingerprint: 'AB:CD' }],
}

function visit(path: string, param?: string, settings: LandingSettings = LANDING): HttpAnswer {
  const route = landingRoutes(settings).find(each => each.path === path)
  if (route === undefined) throw new Error(`nothing at ${path}`)
  return route.handle({ params: [param] } as unknown as HttpRequest) as HttpAnswer
}

t.test('every token has the same page, known or not', async t => {
  const api = await openTestApi(t)
  const [ann] = (await people(api, 'Ann')) as [TestUser]
  const { text } = await shareTokenOf(api, ann)
  const pages = [text, UNKNOWN].map(token => visit('/c/{token}', token))
  const [known, unknown] = pages.map(({ body }) => String(body)) as [string, string]
  t.equal(known.replaceAll(text, UNKNOWN), unknown)
  t.same(pages[0]!.headers, pages[1]!.headers)
  t.match(known, `href="callsign://c/${text}"`)
  t.notMatch(known, 'Ann')
  t.match(known, 'Callsign &#60;b&#62;')
})

t.test('the page allows nothing but its own style', async t => {
  const { body, headers = [], contentType } = visit('/c/{token}', UNKNOWN)
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(String(body)) ?? []
  const hash = createHash('sha256').update(style).digest('base64')
  const policy = new Map(headers).get('Content-Security-Policy')
  t.equal(
    policy,
    `default-src 'none'; style-src 'sha256-${hash}'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  )
  t.equal(contentType, 'text/html; charset=utf-8')
  t.notMatch(String(body), /<script|style="|src=/)
})

t.test('in development the page leads to the client in the browser', async t => {
  const link = `href="/dev/client#c=${UNKNOWN}"`
  t.match(String(visit('/c/{token}', UNKNOWN, { ...LANDING, isDevelopment: true }).body), link)
  t.notMatch(String(visit('/c/{token}', UNKNOWN).body), '/dev/')
})

t.test('an impossible token counts as a cut link, and is not repeated', async t => {
  const [first, ...others] = [
    '',
    '1',
    UNKNOWN.slice(0, -4),
    'c_"><script>',
    `${UNKNOWN}A`,
    UNKNOWN.replace('c_', 'C_'),
  ].map(param => visit('/c/{token}', param))
  t.match(first, { status: 404, contentType: 'text/html; charset=utf-8', body: /not whole/ })
  for (const page of others) t.same(page, first)
})

t.test('phones learn from two files that the app opens share links, where it is configured', async t => {
  const apple = visit('/.well-known/apple-app-site-association')
  t.equal(apple.contentType, 'application/json')
  t.match(JSON.parse(String(apple.body)), {
    applinks: { details: [{ appIDs: ['ABCDE12345.com.example.app'], components: [{ '/': '/c/*' }] }] },
  })
  t.same(JSON.parse(String(visit('/.well-known/assetlinks.json').body)), [
    {
      relation: ['delegate_permission/common.handle_all_urls'],
      target: {
        namespace: 'android_app',
        package_name: 'com.example.app',
        sha256_cert_fingerprints: ['AB:CD'],
      },
    },
  ])
  t.notMatch(String(apple.body), 'webcredentials')
  const withPasskeys = { ...LANDING, passkeys: {} }
  t.match(
    JSON.parse(String(visit('/.well-known/apple-app-site-association', undefined, withPasskeys).body)),
    { applinks: {}, webcredentials: { apps: ['ABCDE12345.com.example.app'] } },
    'and that it may use passkeys',
  )
  t.match(JSON.parse(String(visit('/.well-known/assetlinks.json', undefined, withPasskeys).body)), [
    {
      relation: ['delegate_permission/common.handle_all_urls', 'delegate_permission/common.get_login_creds'],
    },
  ])
  const none = landingRoutes({ ...LANDING, appleAppIds: [], androidApps: [] })
  t.same(
    none.map(({ path }) => path),
    ['/c/{token}'],
  )
})
