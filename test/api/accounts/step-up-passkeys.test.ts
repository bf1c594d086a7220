/** A passkey as the proof after the sign-in: of which challenge, whose, and with which signature. */

import t from 'tap'
import { sha256 } from '../../../src/log/primitives-node.ts'
import { stepUpMessage } from '../../../src/log/signing-messages.ts'
import { prove, type TestAnswer } from '../../support/application.ts'
import { Authenticator } from '../../support/authenticator.ts'
import { fromUtf8 } from '../../support/bytes.ts'
import { newPhone, signWith } from '../../support/device-lists.ts'
import { WITH_LOG } from '../../support/device-requests.ts'
import { addPasskey } from '../../support/passkeys.ts'
import { base64, signUp } from '../../support/sign-in-people.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const STEP_UP = 'POST /app/api/user/step-up'
const OPTIONS = 'POST /app/api/passkey/options'
const END = ['DELETE /app/api/user', { confirm: true }] as const
const ANN = 'ann@example.org'

function outcome({ status, body }: TestAnswer): string {
  const fault = body?.errors?.[0]
  return `${status} ${body?.code ?? ''} ${fault === undefined ? '' : `${fault.pointer} ${fault.code}`}`.trim()
}

/** The user's session, and an authenticator with their passkey; what proved them then has lapsed. */
async function withPasskey(api: TestApi, address = ANN) {
  const { accessToken: token } = (await api.codeLogin(address)).body
  await prove(api.world, token)
  const authenticator = new Authenticator()
  const { status } = await addPasskey(api, { token }, authenticator)
  if (status !== 201) throw new Error(`adding a passkey answers ${status}`)
  api.world.tick(900_001)
  await api.world.takeSent()
  return { token, authenticator }
}

t.test('whoever has a passkey is sent no code unasked, and proves by the passkey, once', async t => {
  const api = await openTestApi(t)
  const { token, authenticator } = await withPasskey(api)
  const refused = await api.send(END[0], { token, body: END[1] })
  t.match(refused.body, { code: 'STEP_UP_REQUIRED', ways: ['code', 'passkey'], challenge: undefined })
  t.same(await api.letters(), [])
  const { options } = (await api.send(OPTIONS, { token })).body
  const body = { passkey: authenticator.get(options) }
  t.match(await api.send(STEP_UP, { token, body }), { status: 200, body: { provenUntil: String } })
  t.equal(outcome(await api.send(STEP_UP, { token, body })), '410 PASSKEY_CHALLENGE_GONE')
  t.equal((await api.send(END[0], { token, body: END[1] })).status, 202)
})

t.test('no answer to another challenge, of another user or a forged one proves anything', async t => {
  const api = await openTestApi(t)
  const ann = await withPasskey(api)
  const eve = await withPasskey(api, 'eve@example.org')
  const { accessToken: other } = (await api.codeLogin(ANN)).body
  const optionsOf = async (token?: string) =>
    (await api.send(OPTIONS, token === undefined ? {} : { token })).body.options
  const own = await optionsOf(ann.token)
  const cases = [
    [ann.authenticator.get(await optionsOf()), '410 PASSKEY_CHALLENGE_GONE'],
    [ann.authenticator.get(await optionsOf(other)), '410 PASSKEY_CHALLENGE_GONE'],
    [eve.authenticator.get(own), '404 PASSKEY_UNKNOWN'],
    [ann.authenticator.get(own, { isForged: true }), '400 PASSKEY_INVALID'],
  ] as const
  for (const [passkey, expected] of cases)
    t.equal(outcome(await api.send(STEP_UP, { token: ann.token, body: { passkey } })), expected)
  t.equal(outcome(await api.send(END[0], { token: ann.token, body: END[1] })), '403 STEP_UP_REQUIRED')
})

t.test("a listed device signs the passkey's challenge, which is still good before it has", async t => {
  const api = await openTestApi(t, WITH_LOG)
  const { token, userId, phone } = await signUp(api, ANN)
  await prove(api.world, token)
  const authenticator = new Authenticator()
  await addPasskey(api, { token }, authenticator)
  api.world.tick(900_001)
  const { options } = (await api.send(OPTIONS, { token })).body
  const passkey = authenticator.get(options)
  const signatureBy = ({ signer }: typeof phone) =>
    base64(signWith(signer, stepUpMessage(BigInt(userId), sha256(fromUtf8(options.challenge)))))
  const bare = await api.send(STEP_UP, { token, body: { passkey } })
  t.equal(outcome(bare), '422 VALIDATION_FAILED /deviceSignature REQUIRED')
  const forged = { passkey, deviceSignature: signatureBy(newPhone('thief')) }
  t.equal(
    outcome(await api.send(STEP_UP, { token, body: forged })),
    '422 VALIDATION_FAILED /deviceSignature SIGNATURE',
  )
  const body = { passkey, deviceSignature: signatureBy(phone) }
  t.equal((await api.send(STEP_UP, { token, body })).status, 200)
})
