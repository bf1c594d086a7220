/** Signing in through the operations, and the letters that wait in the outbox, as their readers would see them. */

import type { OutboxMessage } from '../../src/domain/messages/outbox-message.ts'
import type { Send, TestAnswer, TestRequest, TestWorld } from './application.ts'
import type { IdentityStandIns } from './identity-stand-ins.ts'
import type { Claims } from './oidc-provider.ts'

export type SignInRequests = ReturnType<typeof signInRequests>

export function signInRequests(world: TestWorld, send: Send, identities: IdentityStandIns) {
  return {
    async googleLogin(sub: string, claims: Claims = {}): Promise<TestAnswer> {
      const idToken = await identities.googleToken(sub, claims)
      return send('POST /app/api/login', { body: { verified: true, provider: 'google', idToken } })
    },
    /** Signs in with an address by its code, and empties the outbox. */
    async codeLogin(email: string, from: Pick<TestRequest, 'address' | 'headers'> = {}): Promise<TestAnswer> {
      const { body } = await send('POST /app/api/login', { body: { email } })
      const otp = otpIn(await world.takeSent(), email)
      return send('POST /app/api/verify-login', { ...from, body: { challengeId: body.challengeId, otp } })
    },
    /** The code that waits for an address, as its owner would read it; empties the outbox. */
    async otpFor(address: string): Promise<string> {
      return otpIn(await world.takeSent(), address)
    },
    /** The waiting messages, as `<channel> <to> <letter>`, sorted; empties the outbox. */
    async letters(): Promise<string[]> {
      return (await world.takeSent()).map(inWords).sort()
    },
  }
}

/** The latest code for the address. Throws where there is none. */
function otpIn(sent: readonly OutboxMessage[], address: string): string {
  const found = sent.flatMap(message =>
    (message.channel === 'mail' || message.channel === 'sms') &&
    message.to === address &&
    message.letter.kind === 'otp'
      ? [message.letter.otp]
      : [],
  )
  const otp = found.at(-1)
  if (otp === undefined) throw new Error(`no code waits for ${address}`)
  return otp
}

function inWords(message: OutboxMessage): string {
  if (message.channel === 'push') return `push ${message.notice.kind}`
  if (message.channel === 'apple') return `apple ${message.clientId}`
  return `${message.channel} ${message.to} ${message.letter.kind}`
}
