/** The `fetch` of a drill: which node gets a request, how often, and when the answered attempt left. */

import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { ClusterFetch, serverAt } from '../../scripts/drill/cluster-fetch.ts'

/** A node that answers by this listener, and what it was asked. */
async function startNode(t: Test, name: string, onRequest: RequestListener) {
  const keys: unknown[] = []
  const server = createServer((request, response) => {
    keys.push(request.headers['idempotency-key'])
    onRequest(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  return { name, url: `http://127.0.0.1:${port}`, operatorsUrl: '', grpc: undefined, keys }
}

const busy: RequestListener = (_, response) => void response.writeHead(503).end()
const breaksOff: RequestListener = (_, response) => void response.write('{', () => response.destroy())
const limits: RequestListener = (_, response) =>
  void response
    .writeHead(429, { 'retry-after': '1' })
    .end('{"code":"RATE_LIMITED","detail":"too many calls"}')

t.test('nodes are asked in turn until one answers, and the attempt that it answered is timed', async t => {
  let refusedAtMs = 0
  const one = await startNode(t, 'one', (request, response) => {
    refusedAtMs = performance.now()
    busy(request, response)
  })
  const two = await startNode(t, 'two', breaksOff)
  const three = await startNode(t, 'three', (_, response) => void response.end('{"by":"three"}'))
  const cluster = new ClusterFetch({
    nodes: [one, two, three],
    place: 0,
    stop: new AbortController().signal,
  })
  const { reply, sentAtMs } = await cluster.timed(() =>
    cluster.server.request(
      'POST call/{callId}/accept-rejoin',
      { requesterUserId: '1', requesterDeviceId: '2', encryptedAESKey: '' },
      { callId: '7' },
    ),
  )
  t.match(reply, { by: 'three' })
  t.ok(sentAtMs > refusedAtMs)
  t.equal(cluster.url, three.url)
  t.same(two.keys, one.keys, 'all attempts have one Idempotency-Key')
  t.same(three.keys, one.keys)
})

t.test('a refusal comes at once, and names its request', async t => {
  const one = await startNode(t, 'one', limits)
  const cluster = new ClusterFetch({ nodes: [one], place: 0, stop: new AbortController().signal })
  await t.rejects(cluster.server.request('POST call/{callId}/end', undefined, { callId: '7' }), {
    status: 429,
    message: 'POST /app/api/call/7/end: 429 RATE_LIMITED, too many calls',
  })
  t.equal(one.keys.length, 1)
})

t.test('one node is asked once, also where its answer is lost', async t => {
  const one = await startNode(t, 'one', breaksOff)
  await t.rejects(serverAt(one).request('GET user', undefined), { code: 'NO_ANSWER' })
  t.equal(one.keys.length, 1)
})

t.test('requests without an answer end with the drill', async t => {
  const one = await startNode(t, 'one', busy)
  const cluster = new ClusterFetch({ nodes: [one], place: 0, stop: AbortSignal.abort() })
  await t.rejects(cluster.server.request('GET user', undefined), { code: 'NO_ANSWER' })
})
