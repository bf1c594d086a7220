/** The test vectors of WebAuthn Level 3, and answers that are damaged or made up. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  isOfRp,
  PASSKEY_ALGORITHMS,
  readClientData,
  refusalOfOrigin,
} from '../../src/domain/accounts/passkey.ts'
import { authenticatorDataOf, readAssertion, readRegistration } from '../../src/identity/passkeys.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

interface Signed {
  readonly challenge: string
  readonly clientDataJSON: string
}

interface Vector {
  readonly name: string
  readonly credentialId: string
  readonly registration: Signed & { readonly attestationObject: string }
  readonly authentication?: Signed & { readonly authenticatorData: string; readonly signature: string }
}

const file = readFileSync(join(PROJECT_ROOT, 'test/vectors/webauthn.json'), 'utf8')
const VECTORS: readonly Vector[] = JSON.parse(file).vectors
const SETTINGS = { rpId: 'example.org', origins: ['https://example.org'], takesLoopback: false }
const FLAGS_AT = 32
const USER_VERIFIED = 0x04
/** Where the key has x: behind domain, flags, count, model and an id of 32 octets. */
const X_AT = 97

function base64url(hex: string): string {
  return Buffer.from(hex, 'hex').toString('base64url')
}

function expected({ challenge }: Signed) {
  return { challenge: base64url(challenge), origin: 'https://example.org', rpId: 'example.org' }
}

async function register({ credentialId, registration }: Vector, algorithms = PASSKEY_ALGORITHMS) {
  const id = base64url(credentialId)
  const attestationObject = base64url(registration.attestationObject)
  const clientDataJSON = base64url(registration.clientDataJSON)
  const data = (await authenticatorDataOf(attestationObject))!
  const credential = { id, rawId: id, response: { clientDataJSON } }
  return { data, passkey: await readRegistration(credential, data, algorithms, expected(registration)) }
}

for (const vector of VECTORS) {
  t.test(`${vector.name}: registered and used as the vector says`, async t => {
    const { credentialId, registration, authentication } = vector
    const { data, passkey } = await register(vector)
    t.ok(isOfRp(data, SETTINGS))
    t.notOk(isOfRp(data, { ...SETTINGS, rpId: 'example.com' }))
    t.match(passkey, {
      credentialId: base64url(credentialId),
      counter: 0,
      isSyncable: (data[FLAGS_AT]! & 8) > 0,
    })
    t.equal(passkey?.isUserVerified, (data[FLAGS_AT]! & USER_VERIFIED) > 0)
    const clientData = readClientData(base64url(registration.clientDataJSON))!
    t.match(clientData, { challenge: base64url(registration.challenge) })
    const isFramed = vector.name.endsWith('crossOrigin')
    t.equal(refusalOfOrigin(clientData, SETTINGS), isFramed ? 'PASSKEY_ORIGIN_REFUSED' : undefined)
    if (authentication === undefined || passkey === undefined) return
    const id = base64url(credentialId)
    const response = {
      clientDataJSON: base64url(authentication.clientDataJSON),
      authenticatorData: base64url(authentication.authenticatorData),
      signature: base64url(authentication.signature),
    }
    const read = (changed: Partial<typeof response>) =>
      readAssertion(
        { id, rawId: id, response: { ...response, ...changed } },
        passkey.publicKey,
        expected(authentication),
      )
    const flags = Buffer.from(authentication.authenticatorData, 'hex')[FLAGS_AT]!
    t.match(await read({}), { counter: 0, isUserVerified: (flags & USER_VERIFIED) > 0 })
    for (const name of ['authenticatorData', 'signature'] as const) {
      const bytes = Buffer.from(authentication[name], 'hex')
      // The last octet: of the counter, which the signature covers, and of the signature.
      bytes[bytes.length - 1]! ^= 1
      t.equal(await read({ [name]: bytes.toString('base64url') }), undefined, `${name} is changed`)
    }
  })
}

t.test('an algorithm that was not asked for is refused', async t => {
  const rsa = VECTORS.find(({ name }) => name === 'packed.RS256')!
  t.ok((await register(rsa)).passkey)
  t.equal((await register(rsa, [-7])).passkey, undefined)
})

t.test('an attestation is not looked at, so no address in a certificate is asked', async t => {
  const packed = VECTORS.find(({ name }) => name === 'packed.ES256')!
  const whole = Buffer.from(packed.registration.attestationObject, 'hex')
  const at = whole.indexOf(Buffer.from('W3C'))
  whole[at]! ^= 1
  const changed = {
    ...packed,
    registration: { ...packed.registration, attestationObject: whole.toString('hex') },
  }
  t.ok((await register(changed)).passkey, 'a certificate that is wrong')
})

t.test('attestation objects that are none give nothing, and throw nothing', async t => {
  const [{ registration }] = VECTORS as [Vector]
  const whole = Buffer.from(registration.attestationObject, 'hex')
  const nested = Buffer.alloc(7_000, 0x81)
  const huge = Buffer.from('a1686175746844617461' + '5b00ffffffffffffff', 'hex')
  const none = Buffer.from('a0', 'hex')
  const text = Buffer.from('a168617574684461746161', 'hex')
  for (const bytes of [Buffer.alloc(0), none, nested, huge, text, Buffer.from('ff', 'hex')])
    t.equal(await authenticatorDataOf(bytes.toString('base64url')), undefined)
  const id = base64url(VECTORS[0]!.credentialId)
  const clientDataJSON = base64url(registration.clientDataJSON)
  const read = (data: Uint8Array) =>
    readRegistration(
      { id, rawId: id, response: { clientDataJSON } },
      data,
      PASSKEY_ALGORITHMS,
      expected(registration),
    )
  for (let length = 0; length < whole.length; length++) {
    const data = await authenticatorDataOf(whole.subarray(0, length).toString('base64url'))
    if (data !== undefined) t.equal(await read(data), undefined, `${length} octets`)
  }
  // Every octet of the authenticator data changed.
  const data = (await authenticatorDataOf(whole.toString('base64url')))!
  for (let at = 0; at < data.length; at++) {
    const changed = Uint8Array.from(data)
    changed[at]! ^= 0xff
    const passkey = await read(changed)
    if (at >= X_AT && at < X_AT + 32) t.equal(passkey, undefined, `octet ${at}: the point is on no curve`)
    else if (passkey !== undefined) t.equal(passkey.credentialId, id)
  }
})
