import { generateKeyPairSync, randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { IdentityProvider, type ProviderOptions } from '../../src/identity/identity-token.ts'
import {
  type Answer,
  ENDLESS,
  HANG_UP,
  json,
  OidcProvider,
  redirectTo,
  SILENCE,
  signToken,
} from '../support/oidc-provider.ts'

const { privateKey: FOREIGN_KEY } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const APP = 'com.example.app'
const DISCOVERY = '/.well-known/openid-configuration'
const NOW_MS = Date.UTC(2030, 0, 1)

interface Scene {
  readonly clock: { nowMs: number }
  readonly oidc: OidcProvider
  readonly provider: IdentityProvider
  /** `none`, or the code that a token of the provider is refused with; a token of a name that no key has. */
  signIn(keyId?: string): Promise<string>
}

async function scene(t: Test, optionsOf: (oidc: OidcProvider) => Partial<ProviderOptions> = () => ({})) {
  const clock = { nowMs: NOW_MS }
  const oidc = await OidcProvider.start({ nowMs: () => clock.nowMs })
  t.after(() => oidc.stop())
  const options = { name: 'google', issuer: oidc.issuer, clientIds: [APP], ...optionsOf(oidc) }
  const provider = new IdentityProvider(options, { nowMs: () => clock.nowMs })
  const signIn = async (keyId?: string) =>
    codeOf(provider, keyId === undefined ? await oidc.idToken(APP) : await foreignToken(oidc, keyId, clock))
  return { clock, oidc, provider, signIn } satisfies Scene
}

t.test('the keys are found through the discovery document', async t => {
  const { oidc, signIn } = await scene(t)
  t.equal(await signIn(), 'none')
  t.equal(oidc.requests(DISCOVERY), 1)
  t.equal(oidc.requests('/jwks'), 1)
})

t.test('a jwksUri that is configured spares the discovery document', async t => {
  const { oidc, signIn } = await scene(t, oidc => ({ jwksUri: oidc.jwksUri }))
  t.equal(await signIn(), 'none')
  t.equal(oidc.requests(DISCOVERY), 0)
})

t.test('an issuer that ends with a slash has its document below that slash', async t => {
  const { oidc, provider } = await scene(t, oidc => ({ issuer: `${oidc.issuer}/` }))
  oidc.answerWith(DISCOVERY, json(200, { issuer: `${oidc.issuer}/`, jwks_uri: oidc.jwksUri }))
  t.equal(await codeOf(provider, await oidc.idToken(APP, { iss: `${oidc.issuer}/` })), 'none')
})

t.test('a discovery document of another issuer, or with no usable key address, is not followed', async t => {
  const { oidc, signIn } = await scene(t)
  const { issuer, jwksUri } = oidc
  const documents: unknown[] = [
    { issuer: `${issuer}/`, jwks_uri: jwksUri },
    { issuer: 'https://another.example', jwks_uri: jwksUri },
    { jwks_uri: jwksUri },
    { issuer },
    { issuer, jwks_uri: 7 },
    { issuer, jwks_uri: 'file:///etc/hosts' },
    { issuer, jwks_uri: '/jwks' },
    [],
    null,
  ]
  const found: string[] = []
  for (const document of documents) {
    oidc.answerWith(DISCOVERY, json(200, document))
    found.push(await signIn())
  }
  t.same(found, documents.map(unavailable))
  t.equal(oidc.requests('/jwks'), 0)
})

t.test('an issuer behind TLS does not send us to keys without it', async t => {
  const asked: string[] = []
  const fetch = async (url: unknown) => {
    asked.push(String(url))
    return Response.json({ issuer: 'https://issuer.example', jwks_uri: 'http://issuer.example/keys' })
  }
  const options = { name: 'p', issuer: 'https://issuer.example', clientIds: [APP] }
  const provider = new IdentityProvider(options, { nowMs: () => NOW_MS, fetch })
  const { oidc } = await scene(t)
  t.equal(await codeOf(provider, await oidc.idToken(APP)), unavailable())
  t.same(asked, ['https://issuer.example/.well-known/openid-configuration'])
})

t.test('the keys are fetched once for many tokens, at once or one after the other', async t => {
  const { clock, oidc, signIn } = await scene(t)
  t.same(await Promise.all(Array.from({ length: 20 }, () => signIn())), Array(20).fill('none'))
  for (let minute = 0; minute < 9; minute++) {
    clock.nowMs += 60_000
    await signIn()
  }
  t.equal(oidc.requests('/jwks'), 1)
})

t.test('a key that was withdrawn is refused after ten minutes', async t => {
  const { clock, oidc, provider, signIn } = await scene(t)
  const old = await oidc.idToken(APP)
  t.equal(await signIn(), 'none')
  await oidc.rotateKey()
  clock.nowMs += 10 * 60_000 - 1
  t.equal(await codeOf(provider, old), 'none')
  clock.nowMs += 1
  t.equal(await codeOf(provider, old), invalid())
})

t.test('a key that is new is looked for at once', async t => {
  const { oidc, signIn } = await scene(t)
  t.equal(await signIn(), 'none')
  await oidc.rotateKey()
  t.same(await Promise.all([signIn(), signIn(), signIn()]), ['none', 'none', 'none'])
  t.equal(oidc.requests('/jwks'), 2)
})

t.test('made-up key ids make us ask the provider once per 30 seconds', async t => {
  const { clock, oidc, signIn } = await scene(t)
  t.equal(await signIn(), 'none')
  const flood = () => Promise.all(Array.from({ length: 30 }, () => signIn(randomUUID())))
  const counts: number[] = []
  const found: string[] = []
  for (const passedMs of [0, 29_999, 1, 29_999]) {
    clock.nowMs += passedMs
    found.push(...(await flood()), ...(await flood()))
    counts.push(oidc.requests('/jwks'))
  }
  t.same(counts, [2, 2, 3, 3])
  t.same(new Set(found), new Set([invalid()]))
  t.equal(await signIn(), 'none')
})

t.test('a set that was fetched for a token is not fetched again for it', async t => {
  const { oidc, signIn } = await scene(t)
  t.equal(await signIn('made-up'), invalid())
  t.equal(oidc.requests('/jwks'), 1)
})

t.test('a key made known just after a flood is found when the pause has ended', async t => {
  const { clock, oidc, signIn } = await scene(t)
  await signIn()
  await signIn('made-up')
  await oidc.rotateKey()
  t.equal(await signIn(), invalid())
  clock.nowMs += 30_000
  t.equal(await signIn(), 'none')
})

t.test('while the provider is down its last keys are used', async t => {
  const { clock, oidc, signIn } = await scene(t)
  t.equal(await signIn(), 'none')
  oidc.answerWith('/jwks', HANG_UP)
  const found: string[] = []
  for (let hour = 0; hour < 48; hour++) {
    clock.nowMs += 60 * 60_000
    found.push(await signIn())
  }
  t.same(new Set(found), new Set(['none']))
})

t.test('a provider that is down is asked once per 30 seconds', async t => {
  const { clock, oidc, signIn } = await scene(t)
  await signIn()
  oidc.answerWith('/jwks', HANG_UP)
  clock.nowMs += 10 * 60_000
  const counts: number[] = []
  for (const passedMs of [0, 29_999, 1]) {
    clock.nowMs += passedMs
    await Promise.all([signIn(), signIn(), signIn('made-up'), signIn('another')])
    await signIn()
    counts.push(oidc.requests('/jwks'))
  }
  t.same(counts, [2, 2, 3])
})

t.test('a key that can not be looked for is not called wrong', async t => {
  const { clock, oidc, signIn } = await scene(t)
  t.equal(await signIn(), 'none')
  oidc.answerWith('/jwks', HANG_UP)
  await oidc.rotateKey()
  t.equal(await signIn(), unavailable())
  t.equal(await signIn(), unavailable(), 'nor while the pause lasts')
  oidc.answerWith('/jwks', undefined)
  clock.nowMs += 30_000
  t.equal(await signIn(), 'none')
})

t.test('a provider that was never reached is asked again by the next token', async t => {
  const { oidc, signIn } = await scene(t)
  oidc.answerWith('/jwks', HANG_UP)
  t.equal(await signIn(), unavailable())
  oidc.answerWith('/jwks', undefined)
  t.equal(await signIn(), 'none')
})

t.test('a provider that is back is not taken for one that is down', async t => {
  const { oidc, signIn } = await scene(t)
  oidc.answerWith('/jwks', HANG_UP)
  t.equal(await signIn(), unavailable())
  oidc.answerWith('/jwks', undefined)
  t.same([await signIn(), await signIn('made-up'), await signIn('another')], ['none', invalid(), invalid()])
})

t.test('a clock that is set back does not keep an old set for ever', async t => {
  const { clock, oidc, signIn } = await scene(t)
  await signIn()
  clock.nowMs -= 24 * 60 * 60_000
  t.equal(await signIn(), 'none')
  t.equal(oidc.requests('/jwks'), 2)
})

const USELESS: Readonly<Record<string, Answer>> = {
  'a server error': json(503, {}),
  'an error that has keys': json(500, { keys: [{ kty: 'RSA', n: 'AQAB', e: 'AQAB' }] }),
  'a body that is not JSON': (_request, response) => response.end('<html></html>'),
  'a body cut short': (_request, response) => response.end('{"keys":['),
  'JSON that is no key set': json(200, ['keys']),
  'a key set without keys': json(200, { keys: [] }),
  'a key set of something else': json(200, { keys: [{ kty: 'oct', k: 'AAAA' }] }),
  'a key that is not an object': json(200, { keys: [{ kty: 'RSA' }, 'key'] }),
  'a body that does not end': ENDLESS,
  'a body longer than a key set': json(200, { keys: [{ kty: 'RSA' }], padding: 'x'.repeat(140_000) }),
}

for (const [name, answer] of Object.entries(USELESS)) {
  t.test(`${name} is no set of keys`, async t => {
    const { oidc, signIn } = await scene(t)
    oidc.answerWith('/jwks', answer)
    t.equal(await signIn(), unavailable())
  })

  t.test(`${name} does not replace the keys from before`, async t => {
    const { clock, oidc, signIn } = await scene(t)
    await signIn()
    oidc.answerWith('/jwks', answer)
    clock.nowMs += 10 * 60_000
    t.equal(await signIn(), 'none')
    t.equal(oidc.requests('/jwks'), 2)
  })
}

t.test('a redirect to other keys is not followed', async t => {
  const { oidc, signIn } = await scene(t)
  const elsewhere = await OidcProvider.start()
  t.after(() => elsewhere.stop())
  for (const path of ['/jwks', DISCOVERY]) {
    oidc.answerWith(path, redirectTo(`${elsewhere.issuer}${path}`))
    t.equal(await signIn(), unavailable())
  }
  t.equal(elsewhere.requests('/jwks') + elsewhere.requests(DISCOVERY), 0)
})

t.test('a provider that does not answer is not waited for longer than the timeout', async t => {
  const { oidc, signIn } = await scene(t, () => ({ timeoutMs: 50 }))
  for (const path of ['/jwks', DISCOVERY]) {
    oidc.answerWith(path, SILENCE)
    t.equal(await signIn(), unavailable())
  }
})

t.test('the log says why the keys are missing, the message does not', async t => {
  const { oidc, provider } = await scene(t)
  oidc.answerWith('/jwks', json(503, {}))
  const error = await provider.verify(await oidc.idToken(APP)).catch(error => error)
  t.equal(error.message, `the keys of ${oidc.issuer} can not be fetched`)
  t.match(error.cause, { message: `${oidc.jwksUri} answers 503` })
})

/** A token like the provider's, under the name of a key that it does not have. */
function foreignToken(oidc: OidcProvider, kid: string, clock: { nowMs: number }): Promise<string> {
  const iat = Math.floor(clock.nowMs / 1000)
  const claims = { iss: oidc.issuer, aud: APP, sub: 'subject-1', iat, exp: iat + 600 }
  return signToken({ alg: 'RS256', kid }, claims, FOREIGN_KEY)
}

function codeOf(provider: IdentityProvider, token: string): Promise<string> {
  return provider.verify(token).then(
    () => 'none',
    error => error.code ?? String(error),
  )
}

function unavailable(): string {
  return 'PROVIDER_UNAVAILABLE'
}

function invalid(): string {
  return 'PROVIDER_TOKEN_INVALID'
}
