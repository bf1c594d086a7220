import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { sendText, textServer } from '../../scripts/support/text-server.ts'

async function serve(t: Test, answer: Parameters<typeof textServer>[1]): Promise<string> {
  const server = textServer({ connectionsMax: 10, keepAliveTimeout: 1_000 }, answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test('a text is sent with its length, and headers in place of the usual ones', async t => {
  const url = await serve(t, (_, response) =>
    sendText(response, 404, 'für\n', { 'cache-control': 'no-cache' }),
  )
  const answer = await fetch(url)
  t.equal(answer.status, 404)
  t.equal(await answer.text(), 'für\n')
  t.match(Object.fromEntries(answer.headers), {
    'content-length': '5',
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
  })
})

t.test('a request is answered once', async t => {
  const url = await serve(t, (_, response) => {
    sendText(response, 200, 'first\n')
    sendText(response, 500, 'second\n')
  })
  const answer = await fetch(url)
  t.equal(answer.status, 200)
  t.equal(await answer.text(), 'first\n')
})

t.test('headers beyond eight KiB are refused', async t => {
  const url = await serve(t, (_, response) => sendText(response, 200, 'taken\n'))
  const answer = await fetch(url, { headers: { 'x-long': 'a'.repeat(8_192) } })
  t.equal(answer.status, 431)
})
