/** Why an address can't be listened on: the servers' libraries say only that it can't, the kernel says why. */

import { createServer } from 'node:net'

/** Resolves with what is wrong with the address, as the rest of a sentence; undefined where it can be listened on. */
export function tryPort(host: string, port: number): Promise<string | undefined> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', ({ code = 'unknown reason' }: NodeJS.ErrnoException) =>
      resolve(`${FAULTS[code] ?? "can't be listened on"} (${code})${ADVICE[code] ?? ''}`),
    )
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
