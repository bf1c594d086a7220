/** Access to the development surface: requests that name this machine, and pages of this server. */

import { networkInterfaces } from 'node:os'
import t from 'tap'
import { type GuardOptions, guardData, guardHost, guardPlace } from '../../src/operations/console/guard.ts'
import { jsonAnswer } from '../../src/operations/page-route.ts'
import type { HttpRoute } from '../../src/transport/route.ts'
import { type RouteRequest, routeAnswer } from '../support/route-answer.ts'

const OPTIONS: GuardOptions = {
  publicUrl: () => 'https://calls.example:8443',
  isExposed: false,
  corsOrigins: ['http://localhost:5173'],
}

function routeOf(method: HttpRoute['method']): HttpRoute {
  return { method, path: '/dev/something', handle: () => jsonAnswer(200, '"let in"') }
}

function nameHost(host: string, options: Partial<GuardOptions> = {}): Promise<unknown> {
  return routeAnswer(guardHost(routeOf('GET'), { ...OPTIONS, ...options }), { headers: { host } })
}

function send(method: HttpRoute['method'], request: RouteRequest): Promise<unknown> {
  const headers = { host: 'localhost:8080', ...request.headers }
  return routeAnswer(guardData(routeOf(method), OPTIONS), { ...request, headers })
}

const LOOPBACK = [
  'localhost',
  'localhost:8080',
  'LOCALHOST:8080',
  '127.0.0.1',
  '127.0.0.1:8080',
  '127.1.2.3:1',
  '[::1]',
  '[::1]:8080',
  '[0:0:0:0:0:0:0:1]:8080',
]
const HERE = [...LOOPBACK, 'calls.example', 'calls.example:8443', 'Calls.Example']
const ADDRESSES = ['192.168.1.20:8080', '10.0.0.7', '[fe80::1]:8080', '0.0.0.0:8080']
const ELSEWHERE = [
  '',
  'evil.example',
  'evil.example:8080',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  'localhost.',
  'xcalls.example',
  'calls.example.evil.example',
  'localhost@evil.example',
  'evil.example#localhost',
  'localhost evil.example',
  'localhost, evil.example',
  '[::1',
  '[::1].evil.example',
  'localhost:99999',
  '127.0.0.1:8080/evil',
  'évil.example',
  ':8080',
  '256.0.0.1',
  '[::1%eth0]',
]

t.test('a request that names this machine is let in', async t => {
  for (const host of HERE) t.equal(await nameHost(host), 'let in', host)
})

t.test('a request that names another host is refused, as after DNS rebinding', async t => {
  for (const host of [...ELSEWHERE, ...ADDRESSES]) {
    await t.rejects(nameHost(host), { code: 'HOST_NOT_ALLOWED' }, host)
  }
})

t.test('a server open to other machines is named by any address, and by no other name', async t => {
  for (const host of [...HERE, ...ADDRESSES])
    t.equal(await nameHost(host, { isExposed: true }), 'let in', host)
  for (const host of ELSEWHERE) {
    await t.rejects(nameHost(host, { isExposed: true }), { code: 'HOST_NOT_ALLOWED' }, host)
  }
})

t.test('data are for programs and for pages of this server', async t => {
  const own = [
    {},
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
    { origin: 'http://localhost:8080' },
  ]
  for (const headers of own) t.equal(await send('GET', { headers }), 'let in', JSON.stringify(headers))
  t.equal(
    await send('GET', { headers: { origin: 'http://localhost:5173' } }),
    'let in',
    'the API is open to it',
  )
})

t.test('data are not for pages from elsewhere, whether they could read them or not', async t => {
  const foreign = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'null' },
    { origin: 'https://evil.example' },
    { origin: 'http://localhost:9999' },
    { origin: 'http://localhost' },
    { origin: 'https://calls.example' },
    { origin: 'https://calls.example:8443' },
    { origin: 'file://' },
    { origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' },
  ]
  for (const headers of foreign) {
    await t.rejects(send('GET', { headers }), { code: 'ORIGIN_NOT_ALLOWED' }, JSON.stringify(headers))
    const command = { headers, contentType: 'application/json' }
    await t.rejects(send('POST', command), { code: 'ORIGIN_NOT_ALLOWED' }, JSON.stringify(headers))
  }
})

t.test('a page that the API is open to reads, and commands nothing', async t => {
  const headers = { origin: 'http://localhost:5173' }
  await t.rejects(send('POST', { headers, contentType: 'application/json' }), { code: 'ORIGIN_NOT_ALLOWED' })
})

t.test('a command is JSON and says so: what a page may send unasked is refused', async t => {
  for (const contentType of ['application/json', 'Application/JSON; charset=utf-8']) {
    t.equal(await send('POST', { contentType }), 'let in', contentType)
  }
  const simple = ['', 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']
  for (const contentType of [...simple, 'text/plain; application/json', 'application/jsonp', 'text/json']) {
    await t.rejects(send('POST', { contentType }), { code: 'UNSUPPORTED_MEDIA_TYPE' }, contentType)
  }
})

t.test('a request of another host is refused before anything else is looked at', async t => {
  const headers = { host: 'evil.example', origin: 'http://evil.example', 'sec-fetch-site': 'same-origin' }
  await t.rejects(send('GET', { headers }), { code: 'HOST_NOT_ALLOWED' })
})

const OWN_ADDRESSES = Object.values(networkInterfaces()).flatMap(addresses => addresses ?? [])

/** How an address stands in a Host header. */
const inHost = ({ family, address }: { family: string; address: string }) =>
  family === 'IPv6' ? `[${address}]:8080` : `${address}:8080`

t.test('data and the console are for this machine, by any address of it', async t => {
  const options = { ...OPTIONS, isExposed: true }
  const guarded = [guardData(routeOf('GET'), options), guardPlace(routeOf('GET'), options)]
  const here = [
    '127.0.0.1',
    '127.9.9.9',
    '::1',
    ...OWN_ADDRESSES.flatMap(each => (each.family === 'IPv4' ? each.address : [])),
  ]
  const elsewhere = ['203.0.113.77', '2001:db8::1', 'fe80::1', '128.0.0.1', '::2:0:0:0:1']
  for (const route of guarded) {
    for (const host of ['localhost:8080', ...OWN_ADDRESSES.map(inHost)]) {
      for (const address of here)
        t.equal(await routeAnswer(route, { headers: { host }, address }), 'let in', address)
      for (const address of elsewhere) {
        await t.rejects(
          routeAnswer(route, { headers: { host }, address }),
          { code: 'HOST_NOT_ALLOWED' },
          address,
        )
      }
    }
  }
  const page = guardHost(routeOf('GET'), options)
  const fromPhone = { headers: { host: '192.168.1.20:8080' }, address: '203.0.113.77' }
  t.equal(await routeAnswer(page, fromPhone), 'let in', 'other pages tell nothing')
})

t.test('data and the console are not for a request that asks for another name or address', async t => {
  const names = [...ELSEWHERE, '192.0.2.20:8080', 'calls.example', 'calls.example:8443', 'box.tunnel.example']
  for (const isExposed of [false, true]) {
    for (const guard of [guardData, guardPlace]) {
      const route = guard(routeOf('GET'), { ...OPTIONS, isExposed })
      for (const host of LOOPBACK) t.equal(await routeAnswer(route, { headers: { host } }), 'let in', host)
      for (const host of names)
        await t.rejects(routeAnswer(route, { headers: { host } }), { code: 'HOST_NOT_ALLOWED' }, host)
    }
  }
  const lan = OWN_ADDRESSES.find(({ family, internal }) => family === 'IPv4' && !internal)
  if (lan === undefined) return
  const headers = { host: inHost(lan) }
  await t.rejects(routeAnswer(guardData(routeOf('GET'), OPTIONS), { headers }), { code: 'HOST_NOT_ALLOWED' })
})

t.test('data and the console are not for a request that a proxy or a tunnel forwards', async t => {
  const marks = [
    'forwarded',
    'via',
    ...['for', 'host', 'proto', 'port', 'server', 'prefix', 'anything'].map(name => `x-forwarded-${name}`),
    ...['connecting-ip', 'ray', 'visitor'].map(name => `cf-${name}`),
    'x-real-ip',
    'x-original-host',
  ]
  for (const guard of [guardData, guardPlace]) {
    const route = guard(routeOf('GET'), OPTIONS)
    for (const mark of marks) {
      for (const value of ['127.0.0.1', '']) {
        const headers = { host: 'localhost:8080', [mark]: value }
        await t.rejects(routeAnswer(route, { headers }), { code: 'HOST_NOT_ALLOWED' }, mark)
      }
    }
    const other = { host: 'localhost:8080', 'x-request-id': 'a-request', 'cache-control': 'no-cache' }
    t.equal(await routeAnswer(route, { headers: other }), 'let in')
  }
})
