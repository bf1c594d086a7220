/**
 * An authenticator in software, with the browser around it: it makes passkeys (ES256) and signs by them as WebAuthn Level 3
 * says, or with a fault that a test asks for.
 */

import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** Differences from a right answer. */
export interface Oddity {
  readonly origin?: string
  readonly rpId?: string
  readonly type?: string
  readonly challenge?: string
  /** Members of the client data beside the usual ones. */
  readonly clientData?: object
  readonly flags?: number
  readonly counter?: number
  readonly userHandle?: string | null
  readonly credentialId?: Buffer
  /** The signature of another key. */
  readonly isForged?: boolean
  readonly algorithm?: 'RS1'
}

interface Passkey {
  readonly id: Buffer
  readonly privateKey: KeyObject
  readonly userHandle: string
  counter: number
}

interface CreationOptions {
  readonly challenge: string
  readonly rp: { readonly id: string }
  readonly user: { readonly id: string }
}

interface RequestOptions {
  readonly challenge: string
  readonly rpId: string
}

export class Authenticator {
  readonly #origin: string
  readonly passkeys: Passkey[] = []

  constructor(origin = 'https://example.org') {
    this.#origin = origin
  }

  /** As `navigator.credentials.create` answers. */
  create(options: CreationOptions, oddity: Oddity = {}) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const id = oddity.credentialId ?? randomBytes(32)
    this.passkeys.push({ id, privateKey, userHandle: options.user.id, counter: 0 })
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
    const algorithm = oddity.algorithm === 'RS1' ? Buffer.from('39fffe', 'hex') : Buffer.from('26', 'hex')
    const key = Buffer.concat([
      Buffer.from('a5010203', 'hex'),
      algorithm,
      Buffer.from('2001215820', 'hex'),
      Buffer.from(x, 'base64url'),
      Buffer.from('225820', 'hex'),
      Buffer.from(y, 'base64url'),
    ])
    const length = Buffer.alloc(2)
    length.writeUInt16BE(id.length)
    const attested = Buffer.concat([Buffer.alloc(16, 7), length, id, key])
    const head = authenticatorData(oddity.rpId ?? options.rp.id, oddity.flags ?? CREATED_FLAGS, 0)
    const data = Buffer.concat([head, attested])
    const size = Buffer.from([0x59, data.length >> 8, data.length & 0xff])
    const prefix = Buffer.from('\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData', 'latin1')
    return credentialOf(id, {
      clientDataJSON: this.#clientData('webauthn.create', options, oddity).toString('base64url'),
      attestationObject: Buffer.concat([prefix, size, data]).toString('base64url'),
      transports: ['internal'],
    })
  }

  /** As `navigator.credentials.get` answers, by the newest passkey. */
  get(options: RequestOptions, oddity: Oddity = {}) {
    const passkey = this.passkeys.at(-1)!
    const counter = oddity.counter ?? passkey.counter
    const data = authenticatorData(oddity.rpId ?? options.rpId, oddity.flags ?? USED_FLAGS, counter)
    const clientData = this.#clientData('webauthn.get', options, oddity)
    const key = oddity.isForged
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
      : passkey.privateKey
    const signed = Buffer.concat([data, createHash('sha256').update(clientData).digest()])
    const userHandle = oddity.userHandle === undefined ? passkey.userHandle : oddity.userHandle
    return credentialOf(oddity.credentialId ?? passkey.id, {
      clientDataJSON: clientData.toString('base64url'),
      authenticatorData: data.toString('base64url'),
      signature: sign('sha256', signed, key).toString('base64url'),
      ...(userHandle !== null && { userHandle }),
    })
  }

  #clientData(type: string, { challenge }: { readonly challenge: string }, oddity: Oddity): Buffer {
    const usual = { type: oddity.type ?? type, challenge: oddity.challenge ?? challenge }
    const origin = oddity.origin ?? this.#origin
    return Buffer.from(JSON.stringify({ ...usual, origin, crossOrigin: false, ...oddity.clientData }))
  }
}

function credentialOf<Response>(id: Buffer, response: Response) {
  const text = id.toString('base64url')
  return { id: text, rawId: text, type: 'public-key' as const, response, clientExtensionResults: {} }
}

function authenticatorData(rpId: string, flags: number, counter: number): Buffer {
  const count = Buffer.alloc(4)
  count.writeUInt32BE(counter)
  return Buffer.concat([createHash('sha256').update(rpId).digest(), Buffer.from([flags]), count])
}

/** User present and verified, may be backed up and is. */
export const USED_FLAGS = 0x1d
/** The same, with a new credential. */
const CREATED_FLAGS = USED_FLAGS | 0x40
