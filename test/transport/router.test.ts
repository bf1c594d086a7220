/** Paths: canonical ones, values in them, and every other spelling that leads to the same route (contract 1.1). */

import t from 'tap'
import type { HttpRoute } from '../../src/transport/route.ts'
import { fillPath, Router } from '../../src/transport/router.ts'

function route(method: HttpRoute['method'], path: string, more: Partial<HttpRoute> = {}): HttpRoute {
  return { method, path, handle: () => ({ status: 204, contentType: '', body: '' }), ...more }
}

const router = new Router([
  route('GET', '/app/api/meta'),
  route('GET', '/app/api/devices'),
  route('DELETE', '/app/api/devices/{deviceId}'),
  route('PUT', '/app/api/devices/{id}'),
  route('POST', '/app/api/call/{callId}/invite', {
    deprecatedAliases: [{ path: '/group-calls/{callId}/invite', since: 1_700_000_000 }],
  }),
  route('POST', '/app/api/call/{callId}/device/{deviceId}'),
  route('POST', '/app/api/register_device', { aliases: ['/app/api/register-device'] }),
  route('GET', '/credentials', { aliases: ['/app/api/credentials'] }),
  route('POST', '/api/get-public-keys'),
])

function find(path: string) {
  const match = router.find(path)
  return match === undefined ? undefined : [match.path, ...match.params]
}

t.test('a path finds its route, with or without a trailing slash', async t => {
  t.same(find('/app/api/meta'), ['/app/api/meta'])
  t.same(find('/app/api/meta/'), ['/app/api/meta'])
  t.same(find('/app/api/devices/7/'), ['/app/api/devices/{deviceId}', '7'])
  t.same(find('/api/get-public-keys/'), ['/api/get-public-keys'])
})

t.test('values come in their order, percent-decoded', async t => {
  t.same(find('/app/api/call/a%2Fb/device/%E2%82%AC'), [
    '/app/api/call/{callId}/device/{deviceId}',
    'a/b',
    '€',
  ])
  t.same(find('/app/api/devices/a+b%20c'), ['/app/api/devices/{deviceId}', 'a+b c'])
})

t.test('the methods of one path share it, whatever they call its values', async t => {
  const match = router.find('/app/api/devices/7')
  t.same([...match!.targets.keys()], ['DELETE', 'PUT'])
})

t.test('/api/X is /app/api/X, unless it is a route itself', async t => {
  t.same(find('/api/meta'), ['/app/api/meta'])
  t.same(find('/api/devices/7'), ['/app/api/devices/{deviceId}', '7'])
  t.same(find('/api/call/1/invite/'), ['/app/api/call/{callId}/invite', '1'])
  t.same(find('/api/get-public-keys'), ['/api/get-public-keys'])
  t.same(find('/app/api/get-public-keys'), undefined, 'not the other way round')
})

t.test('an alias leads to the canonical route and says nothing of itself', async t => {
  for (const path of ['/app/api/register-device', '/api/register-device', '/api/register_device']) {
    t.same(find(path), ['/app/api/register_device'], path)
    t.equal(router.find(path)?.targets.get('POST')?.deprecatedSince, undefined, path)
  }
  for (const path of ['/credentials', '/app/api/credentials', '/api/credentials']) {
    t.same(find(path), ['/credentials'], path)
  }
})

t.test('a deprecated alias leads there too, and knows since when', async t => {
  t.same(find('/group-calls/5/invite'), ['/app/api/call/{callId}/invite', '5'])
  t.equal(router.find('/group-calls/5/invite')?.targets.get('POST')?.deprecatedSince, 1_700_000_000)
  t.equal(router.find('/app/api/call/5/invite')?.targets.get('POST')?.deprecatedSince, undefined)
})

t.test('anything else is nothing', async t => {
  const others = [
    '',
    '/',
    '/app',
    '/app/api',
    '/api',
    '/meta',
    '/app/api/Meta',
    '/app/api/meta/x',
    '//app/api/meta',
    '/app/api/meta//',
    '/app/api//meta',
    '/app/api/devices//',
    '/api/',
    '/api//',
    '/app/app/api/meta',
    '/app/api/devices/%',
    '/app/api/devices/%zz',
    '/app/api/devices/%ff',
    '/app/api/devices/%C0%AF',
    '/app/api/call//invite',
    '/app/api/call/1/2/invite',
    '/app/api/{x}/{y}',
    '/api/api/meta',
  ]
  t.same(
    others.filter(path => router.find(path) !== undefined),
    [],
  )
})

t.test('a path that is too long is nothing, before it is taken apart', async t => {
  const [most, more] = [2_048, 2_049].map(chars => '/app/api/devices/'.padEnd(chars, '1'))
  t.equal(find(most!)?.[1], most!.slice('/app/api/devices/'.length))
  t.equal(find(more!), undefined)
})

t.test('a fixed path goes before one with values', async t => {
  const both = new Router([route('GET', '/app/api/a/{x}'), route('GET', '/app/api/a/b')])
  t.equal(both.find('/app/api/a/b')?.path, '/app/api/a/b')
  t.equal(both.find('/api/a/b')?.path, '/app/api/a/b')
  t.equal(both.find('/app/api/a/c')?.path, '/app/api/a/{x}')
})

t.test('two routes for one method and path are a mistake of ours', async t => {
  t.throws(() => new Router([route('GET', '/a/{x}'), route('GET', '/a/{y}')]), /two routes for GET/)
  t.throws(() => new Router([route('GET', '/a'), route('GET', '/b', { aliases: ['/a'] })]), /two routes/)
})

t.test('a canonical path takes its values back, encoded', async t => {
  t.equal(fillPath('/app/api/call/{callId}/device/{id}', ['a/b', '">']), '/app/api/call/a%2Fb/device/%22%3E')
  t.equal(fillPath('/app/api/meta', []), '/app/api/meta')
})
