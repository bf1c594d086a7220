/** Settings of user tokens. */

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { generateUserTokenKey, userTokenKey } from '../../../src/domain/accounts/user-token.ts'
import { EnvironmentReader } from '../../../src/server/settings/environment.ts'
import { readUserTokenSettings, userTokenKeysOf } from '../../../src/server/settings/user-token-settings.ts'

const [one, other] = [generateUserTokenKey(randomBytes), generateUserTokenKey(randomBytes)]

function read(environment: NodeJS.ProcessEnv, isDevelopment = false) {
  const reader = new EnvironmentReader({ environment })
  const config = readUserTokenSettings(reader, isDevelopment)
  return { config, problems: reader.problems }
}

t.test('nothing is set', async t => {
  t.same(read({}), { config: { tokenAudiences: [], tokenKeys: [] }, problems: [] })
})

t.test('keys keep their order, since the first signs', async t => {
  const { config, problems } = read({
    CALLSIGN_TOKEN_KEY: `${other},${one}`,
    CALLSIGN_TOKEN_AUDIENCES: 'a, b',
  })
  t.same(problems, [])
  t.same(config, { tokenAudiences: ['a', 'b'], tokenKeys: [other, one] })
  t.same(
    userTokenKeysOf(config, false, randomBytes(32)).map(({ jwk }) => jwk),
    [userTokenKey(other).jwk, userTokenKey(one).jwk],
  )
})

t.test('a text that is no key, or one key twice, is named, and never shown', async t => {
  const faults = (text: string) => read({ CALLSIGN_TOKEN_KEY: text }).problems
  t.same(faults(`${one},secret`), ['CALLSIGN_TOKEN_KEY is not a list of keys that keygen makes'])
  t.same(faults(`${one},${one}`), ['CALLSIGN_TOKEN_KEY has one key twice'])
})

t.test('an audience has no blank and no comma, and is bounded', async t => {
  const faults = (text: string) =>
    read({ CALLSIGN_TOKEN_AUDIENCES: text, CALLSIGN_TOKEN_KEY: one }).problems.length
  for (const good of ['api', 'https://api.example.org/v1', 'a'.repeat(256)]) t.equal(faults(good), 0, good)
  for (const bad of ['a b', '?api', 'ä', 'a'.repeat(257), 'a\u0000']) t.equal(faults(bad), 1, bad)
})

t.test(
  'production needs a key for its audiences; development has one, for as long as its secret',
  async t => {
    const audiences = { CALLSIGN_TOKEN_AUDIENCES: 'api' }
    t.same(read(audiences).problems, ['CALLSIGN_TOKEN_AUDIENCES needs CALLSIGN_TOKEN_KEY'])
    t.same(read(audiences, true).problems, [])
    const [secret, another] = [randomBytes(32), randomBytes(32)]
    const kids = (secret: Uint8Array, tokenKeys: readonly string[] = [], isDevelopment = true) =>
      userTokenKeysOf({ tokenKeys }, isDevelopment, secret).map(({ jwk }) => jwk.kid)
    t.equal(kids(secret).length, 1)
    t.same(kids(secret), kids(secret))
    t.not(kids(secret)[0], kids(another)[0])
    t.same(kids(secret, [one]), [userTokenKey(one).jwk.kid])
    t.same(kids(secret, [], false), [])
  },
)
