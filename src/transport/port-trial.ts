/** Why an address can't be listened on: the servers' libraries say only that it can't, the kernel says why. */

import { createServer } from 'node:net'

export interface PortFault {
  /** Whether another program has the port. */
  readonly isTaken: boolean
  /** The rest of a sentence that begins with the address. */
  readonly reason: string
}

/** Resolves with what is wrong with the address; undefined where it can be listened on. */
export function tryPort(host: string, port: number): Promise<PortFault | undefined> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', ({ code = 'unknown reason' }: NodeJS.ErrnoException) => {
      const reason = `${FAULTS[code] ?? "can't be listened on"} (${code})${ADVICE[code] ?? ''}`
      resolve({ isTaken: code === 'EADDRINUSE', reason })
    })
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}

const FAULTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is taken',
  EACCES: 'is not permitted',
  EADDRNOTAVAIL: 'is not an address of this machine',
  ENOTFOUND: 'is a name that is not known here',
  EAI_AGAIN: 'is a name that can’t be looked up now',
}
const ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE: ': stop the program that has it, or set another port',
  EACCES: ': ports below 1024 need CAP_NET_BIND_SERVICE (see deploy/callsign.service)',
}
