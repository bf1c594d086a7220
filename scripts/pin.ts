#!/usr/bin/env node
/** Prints the pins that a client knows a server by: `pin --cert FILE` or `pin --url https://HOST:PORT`. */

import { createHash, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { connect, type DetailedPeerCertificate } from 'node:tls'
import { SignalError } from '../src/errors.ts'
import { optional, runCommand, UsageError } from './support/command.ts'

const USAGE = `usage: node dist/scripts/pin.js --cert FILE
       node dist/scripts/pin.js --url https://HOST[:PORT]

Prints the SHA-256 of each certificate's public key (SPKI, RFC 7469), base64, one per line, the server's own
certificate first. A client that pins accepts a server that shows one of them; pin the key of a spare certificate too.

  --cert FILE   a file of certificates (PEM), such as the one that CALLSIGN_TLS_CERT names
  --url URL     a running server; what it shows counts, trusted or not

Exit code: 0 printed, 2 there is no certificate to be had.
`

const CONNECT_DEADLINE_MS = 10_000

await runCommand({
  name: 'pin',
  usage: USAGE,
  flags: { cert: 'value', url: 'value' },
  async run(flags) {
    const file = optional(flags, 'cert')
    const url = optional(flags, 'url')
    if ((file === undefined) === (url === undefined))
      throw new UsageError('one of --cert and --url is needed')
    const chain = file === undefined ? await chainOf(addressOf(url ?? '')) : readChain(file)
    process.stdout.write(chain.map(certificate => `${pinOf(certificate)}\n`).join(''))
    return 0
  },
})

function pinOf({ publicKey }: X509Certificate): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64')
}

function readChain(file: string): readonly X509Certificate[] {
  const blocks = readFileSync(file, 'latin1').match(
    /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g,
  )
  if (blocks === null) throw new UsageError(`${file} holds no certificate (PEM)`)
  try {
    return blocks.map(block => new X509Certificate(block))
  } catch {
    throw new UsageError(`${file} holds a damaged certificate`)
  }
}

function addressOf(text: string): { readonly host: string; readonly port: number } {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'https:') throw new UsageError('--url is an https address')
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 443) }
}

/** The certificates that a server shows in its handshake, and the root above them where this machine knows it. */
function chainOf({ host, port }: { host: string; port: number }): Promise<readonly X509Certificate[]> {
  return new Promise((resolve, reject) => {
    const name = isIP(host) === 0 ? { servername: host } : {}
    // The pins are what trust will rest on: an own authority's certificate is as good here.
    const socket = connect({ host, port, rejectUnauthorized: false, ...name }, () => {
      resolve(certificatesFrom(socket.getPeerCertificate(true)))
      socket.destroy()
    })
    socket.setTimeout(CONNECT_DEADLINE_MS, () =>
      socket.destroy(new SignalError('DEADLINE_EXCEEDED', `${host}:${port} does not answer`)),
    )
    socket.once('error', error => {
      const isNamed = error instanceof SignalError || 'syscall' in error
      reject(isNamed ? error : new SignalError('MALFORMED', `${host}:${port} shows no certificate`))
    })
  })
}

function certificatesFrom(leaf: DetailedPeerCertificate): readonly X509Certificate[] {
  const chain = [leaf]
  // The certificate of a root is its own issuer.
  for (let shown = leaf; !(shown.issuerCertificate ?? shown).raw.equals(shown.raw); ) {
    shown = shown.issuerCertificate
    chain.push(shown)
  }
  return chain.map(({ raw }) => new X509Certificate(raw))
}
