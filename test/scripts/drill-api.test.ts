/** A drill's own requests: its tokens are renewed under way. */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { Api } from '../../scripts/drill/api.ts'

t.test('what is asked while the tokens are renewed is answered, too', async t => {
  let second: Promise<unknown> | undefined
  const server = createServer((request, response) => {
    const { url = '', headers } = request
    const refuse = (code: string) => response.writeHead(401).end(JSON.stringify({ code }))
    if (url === '/app/api/refresh-token') {
      // Answered once the other request has come.
      second = api.send('GET /second')
      server.once('second', () => response.end(renewed))
    } else {
      if (headers.authorization === 'Bearer new') response.end('{}')
      else refuse(headers.authorization === undefined ? 'TOKEN_MISSING' : 'TOKEN_EXPIRED')
      if (url === '/second') server.emit('second')
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close().closeAllConnections())
  const renewed = JSON.stringify({ accessToken: 'new', refreshToken: 'r2', expiresIn: 900 })
  const { port } = server.address() as AddressInfo
  const api = new Api({ url: () => `http://127.0.0.1:${port}`, stop: new AbortController().signal })
  api.take({ accessToken: 'old', refreshToken: 'r1', expiresIn: 900 })
  await t.resolves(api.send('GET /first'))
  await t.resolves(second!)
})
