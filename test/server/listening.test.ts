/** Whether a port can be listened on, and why not. */

import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import t from 'tap'
import { tryPort } from '../../src/server/listening.ts'

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
