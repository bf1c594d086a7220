/** Whether a port can be listened on, and why not. */

import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import t from 'tap'
import { alsoOnLoopback } from '../../../src/server/addresses.ts'
import { tryPort } from '../../../src/server/process/listening.ts'

t.test('a port that can be had is none to speak of; one that can not has its reason', async t => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  t.match(await tryPort('127.0.0.1', port), {
    isTaken: true,
    reason: /^is taken \(EADDRINUSE\): stop the program that has it/,
  })
  t.match(await tryPort('192.0.2.1', 0), {
    isTaken: false,
    reason: /^is not an address of this machine \(EADDRNOTAVAIL\)$/,
  })
  // Longer than a label of a name may be: no server is asked.
  t.match(await tryPort(`${'a'.repeat(64)}.invalid`, 0), {
    isTaken: false,
    reason: /^is a name that is not known here \(ENOTFOUND\)$/,
  })
  other.close()
  await once(other, 'close')
  t.equal(await tryPort('127.0.0.1', port), undefined)
})

t.test(
  'a port that the kernel chose on a network is given back where loopback has it taken, and another is chosen',
  async t => {
    const taken = new Set([40_001, 40_002])
    let open: string[] = []
    let next = 40_001
    const http = {
      listen: (host: string, port: number): Promise<number> => {
        const bound = port === 0 ? next++ : port
        if (host === '127.0.0.1' && taken.has(bound)) return Promise.reject(new Error('taken'))
        open.push(`${host}:${bound}`)
        return Promise.resolve(bound)
      },
      stopListening: () => {
        open = []
      },
    }
    const config = {
      isExposed: true,
      http: { host: '192.168.1.20', port: 0, trustedProxies: [], corsOrigins: [], minClientVersions: [] },
    }
    const both = alsoOnLoopback(config, http)
    t.equal(await both.listen('192.168.1.20', 0), 40_003)
    t.strictSame(open, ['192.168.1.20:40003', '127.0.0.1:40003'])
    http.stopListening()
    await t.rejects(both.listen('192.168.1.20', 40_001), { message: 'taken' })
    t.strictSame(open, [], 'a port that was asked for is not exchanged')
  },
)
