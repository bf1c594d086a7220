/** Connections between nodes: only who has a certificate of their authority gets through, at either end. */

import { once } from 'node:events'
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { connectToNode, NodeServer, type NodeTls } from '../../../src/fronts/link/node-sockets.ts'
import { tlsFile } from '../../support/tls.ts'

const pem = (name: string) => Buffer.from(tlsFile(name))
const tlsOf = (name: string): NodeTls => ({
  certificate: pem(`${name}.crt`),
  key: pem(`${name}.key`),
  authority: pem('ca.crt'),
})

async function openServer(t: Test, tls: NodeTls | undefined, host = 'localhost') {
  const accepted: Socket[] = []
  const server = new NodeServer(tls, socket => {
    accepted.push(socket)
    socket.on('data', data => socket.write(data))
  })
  t.teardown(() => server.close())
  return { accepted, place: { host, port: await server.listen(host, 0) } }
}

async function echoOf(socket: Socket): Promise<string> {
  socket.write('hello')
  const [data] = await once(socket, 'data')
  socket.destroy()
  return String(data)
}

t.test('two nodes of one authority speak', async t => {
  const { place } = await openServer(t, tlsOf('server'))
  t.equal(await echoOf(await connectToNode(place, tlsOf('client'))), 'hello')
})

t.test('on loopback they may do so without certificates', async t => {
  const { place } = await openServer(t, undefined)
  t.equal(await echoOf(await connectToNode(place, undefined)), 'hello')
})

t.test('who has no certificate, or one of another authority, is not accepted', async t => {
  const { place, accepted } = await openServer(t, tlsOf('server'))
  for (const tls of [undefined, { ...tlsOf('client'), ...ofStranger() }]) {
    const socket = await connectToNode(place, tls).catch(() => undefined)
    if (socket !== undefined) {
      socket.on('error', () => undefined)
      socket.write('hello')
      await once(socket, 'close')
    }
  }
  t.same(accepted, [])
})

t.test('a server of another authority, or of another name, is not spoken to', async t => {
  const other = await openServer(t, { ...tlsOf('server'), ...ofStranger() })
  await t.rejects(connectToNode(other.place, tlsOf('client')))
  const elsewhere = await openServer(t, tlsOf('server'), '127.0.0.2')
  await t.rejects(connectToNode(elsewhere.place, tlsOf('client')))
})

function ofStranger(): Pick<NodeTls, 'certificate' | 'key'> {
  return { certificate: pem('stranger.crt'), key: pem('stranger.key') }
}
