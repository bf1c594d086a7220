/** The doctor's reading of another server's answer. */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { ask } from '../../scripts/doctor/http.ts'

t.test('an answer without an end is cut', async t => {
  const server = createServer((_, response) => {
    const pour = () => {
      while (response.writable && response.write(PAGE));
    }
    response.on('drain', pour)
    pour()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  const { status, text } = await ask({ skews: [] }, `http://127.0.0.1:${port}/`)
  t.equal(status, 200)
  t.ok(text.length <= 1_000_000, `${text.length} characters`)
})

const PAGE = Buffer.alloc(64 * 1024, 'x')
