/** Proofs of who a user is, after the sign-in: what deletes an account, or changes how it is reached, takes one. */

import { webCryptoKeys } from '../../src/app/devices/device-keys.ts'
import { encodeBase64 } from '../../src/log/base64.ts'
import { sha256 } from '../../src/log/primitives-node.ts'
import { stepUpMessage } from '../../src/log/signing-messages.ts'
import { App } from './app.ts'
import type { AppSession } from './app-sessions.ts'
import { fromUtf8 } from './bytes.ts'

/** Has a code sent for the session, and enters the one that `read` finds. An app of `@callsign/sdk/app` signs that. */
export async function proveByCode(
  who: App | Pick<AppSession, 'session' | 'storage'>,
  read: () => string | Promise<string>,
): Promise<void> {
  // biome-ignore lint/suspicious/noExplicitAny: answers of two forms
  const ask = async (body: object): Promise<any> => {
    if (!(who instanceof App)) return who.session.request('POST user/step-up', body)
    const answer = await who.send('POST /app/api/user/step-up', body)
    if (answer.status >= 300) throw new Error(`step-up answers ${answer.status}: ${answer.text}`)
    return answer.body
  }
  const { challengeId } = (await ask({ send: 'code' })).challenge
  const signed = who instanceof App ? {} : { deviceSignature: await signatureOf(who, challengeId) }
  await ask({ challengeId, otp: await read(), ...signed })
}

async function signatureOf(
  { session, storage }: Pick<AppSession, 'session' | 'storage'>,
  text: string,
): Promise<string> {
  const userId = session.userId ?? ''
  const keys = await webCryptoKeys(storage)(userId)
  return encodeBase64(await keys.sign(stepUpMessage(BigInt(userId), sha256(fromUtf8(text)))))
}
