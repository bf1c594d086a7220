/** Which ciphers of TLS 1.2 without an authenticated mode a server takes, asked one by one. */

import { connect, getCiphers } from 'node:tls'
import { tlsFile } from './tls.ts'

/** Throws when it takes no strong one either, so that none can't mean an absent server. */
export async function weakCiphersOf(port: number): Promise<string[]> {
  const names = getCiphers().filter(name => !name.startsWith('tls_'))
  const isStrong = (name: string) => /gcm|chacha20/.test(name)
  const taken: string[] = []
  for (const name of names) if (await takes(port, name.toUpperCase())) taken.push(name)
  if (!taken.some(isStrong)) throw new Error(`the server on port ${port} takes no strong cipher either`)
  return taken.filter(name => !isStrong(name))
}

function takes(port: number, cipher: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({
      port,
      host: '127.0.0.1',
      servername: 'localhost',
      ca: tlsFile('ca.crt'),
      // The lowest level offers what this OpenSSL would not choose by itself.
      ciphers: `${cipher}:@SECLEVEL=0`,
      maxVersion: 'TLSv1.2',
      ALPNProtocols: ['h2', 'http/1.1'],
    })
    socket.once('secureConnect', () => socket.destroy(void resolve(true)))
    socket.once('error', () => resolve(false))
  })
}
