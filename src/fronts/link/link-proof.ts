/**
 * How two nodes show each other, before any message, that they have the same `CALLSIGN_SECRET`. Both say hello with a random
 * nonce, and answer the other's with a proof: a key derived from the secret and everything that both ends have said, and
 * under TLS from its session too. A proof is of one side and of this connection, so one that is repeated or sent back shows
 * nothing, and who stands between two nodes can't make one. Each later frame carries a MAC.
 */

import { createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { assert } from '../../errors.ts'

/** The end that listens is the writer's. */
export type LinkSide = 'front' | 'writer'

/** A node's own side of the proof. */
export interface NodeProof {
  /** The node's, or its front's. */
  readonly name: string
  /** `linkKeyOf` the secret of all nodes. */
  readonly key: Uint8Array
}

export type Unproven = 'no node' | 'other secret' | 'silent' | 'closed'

/** The other end has not shown that it is a node of this cluster. */
export class LinkUnproven extends Error {
  readonly why: Unproven

  constructor(why: Unproven) {
    super(REASONS[why])
    this.why = why
  }
}

/** The MACs of a link's frames, in each direction. */
export interface LinkMacs {
  readonly sent: FrameMac
  readonly received: FrameMac
}

/** Counts the frames of one direction: none is left out, repeated or moved. */
export class FrameMac {
  readonly #key: Uint8Array
  #count = 0n

  constructor(key: Uint8Array) {
    this.#key = key
  }

  /** The MAC of the next frame, given in its parts. */
  next(parts: readonly Uint8Array[]): Buffer {
    const number = Buffer.alloc(8)
    number.writeBigUInt64BE(this.#count++)
    const mac = createHmac('sha256', this.#key).update(number)
    for (const part of parts) mac.update(part)
    return mac.digest()
  }
}

export function linkKeyOf(secret: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, '', 'callsign/v1/link', 32))
}

/**
 * Resolves when both ends have proven themselves; else ends the connection, and rejects with `LinkUnproven`. From a
 * stranger it takes no more octets than the socket keeps unread.
 */
export function proveLink(socket: Socket, side: LinkSide, { name, key }: NodeProof): Promise<LinkMacs> {
  const otherSide = side === 'front' ? 'writer' : 'front'
  const own = helloOf(side, name)
  let expected: { readonly proof: Uint8Array; readonly macs: LinkMacs } | undefined
  return new Promise((resolve, reject) => {
    const look = () => {
      if (expected === undefined) {
        const hello: Buffer | null = socket.read(own.length)
        if (hello === null) return
        if (hello.length < own.length) return end('closed')
        if (!hello.subarray(0, START_BYTES).equals(startOf(otherSide))) return end('no node')
        const secrets = secretsOf(key, side === 'front' ? [own, hello] : [hello, own], socket)
        socket.write(secrets.proof(side))
        const macs = {
          sent: new FrameMac(secrets.frames(side)),
          received: new FrameMac(secrets.frames(otherSide)),
        }
        expected = { proof: secrets.proof(otherSide), macs }
      }
      const proof: Buffer | null = socket.read(PROOF_BYTES)
      if (proof === null) return
      if (proof.length < PROOF_BYTES) return end('closed')
      if (!timingSafeEqual(proof, expected.proof)) return end('other secret')
      stopListening()
      resolve(expected.macs)
    }
    const end = (why: Unproven) => {
      stopListening()
      // Not at once: the other end is to read our proof, and to know why.
      socket.destroySoon()
      reject(new LinkUnproven(why))
    }
    const onClosed = () => end('closed')
    const tooLate = setTimeout(() => end('silent'), PROOF_MS_MAX)
    const stopListening = () => {
      clearTimeout(tooLate)
      socket.off('readable', look)
      for (const event of ['end', 'close', 'error']) socket.off(event, onClosed)
    }
    for (const event of ['end', 'close', 'error']) socket.on(event, onClosed)
    socket.on('readable', look)
    socket.write(own)
  })
}

function helloOf(side: LinkSide, name: string): Buffer {
  assert(Buffer.byteLength(name) <= NAME_BYTES, 'the name of a node is short')
  const padded = Buffer.alloc(NAME_BYTES)
  padded.write(name)
  return Buffer.concat([startOf(side), randomBytes(NONCE_BYTES), padded])
}

function startOf(side: LinkSide): Buffer {
  return Buffer.from(`callsign link ${side}`.padEnd(START_BYTES))
}

function secretsOf(key: Uint8Array, hellos: readonly Uint8Array[], socket: Socket) {
  const said = createHash('sha256')
  for (const hello of hellos) said.update(hello)
  if (socket instanceof TLSSocket)
    said.update(socket.exportKeyingMaterial(32, 'EXPORTER-callsign-link', Buffer.alloc(0)))
  const salt = said.digest()
  const derive = (use: string) => new Uint8Array(hkdfSync('sha256', key, salt, `callsign/v1/link ${use}`, 32))
  return {
    proof: (side: LinkSide) => derive(`proof of ${side}`),
    frames: (side: LinkSide) => derive(`frames of ${side}`),
  }
}

export const MAC_BYTES = 32
const PROOF_BYTES = 32
const NONCE_BYTES = 32
const NAME_BYTES = 96
const START_BYTES = 24
const PROOF_MS_MAX = 2_000
const REASONS: Record<Unproven, string> = {
  'no node': 'what came first is not what a node of this version says',
  'other secret': 'its proof is of another secret: the nodes have different CALLSIGN_SECRET',
  silent: `it proved nothing within ${PROOF_MS_MAX} ms`,
  closed: 'it closed the connection before it had proven that it is a node',
}
