/**
 * Proofs after the sign-in of who the user is (docs/protocol/accounts.md, "Prove it once more"): the server refuses some operations without a
 * fresh one. One question to the user serves all operations that wait.
 */

import { sha256 } from '#primitives'
import { encodeBase64 } from '../../log/base64.ts'
import { stepUpMessage } from '../../log/signing-messages.ts'
import { CallsignError, hasCode } from '../callsign-error.ts'
import type { DeviceKeysOf } from '../devices/device-keys.ts'
import type { Challenge } from '../wire.ts'
import type { BodyOf } from './operations.ts'
import { assertPresent, type PasskeyAuthenticator } from './passkeys.ts'
import type { Session } from './session.ts'

/**
 * The user has to prove who they are. The refused operation waits until one of the ways succeeds, and is then repeated; a way
 * that rejects, such as with `OTP_INVALID`, leaves the question open. `refuse` ends it: the operation rejects with
 * `STEP_UP_REQUIRED`.
 */
export interface ProofNeeded {
  /** The ways that both the account and the platform have. */
  readonly ways: readonly ProofWay[]
  /** Where the newest code went, as it may be shown. Undefined while none was sent: `sendCode`. */
  readonly sentTo: string | undefined
  confirm(code: string): Promise<void>
  byPasskey(): Promise<void>
  /** By a token that the provider has signed since the session began. */
  byProvider(provider: string, signed: { readonly idToken: string; readonly nonce?: string }): Promise<void>
  /** Sends a code, or a further one. Rejects with `OTP_COOLDOWN` soon after the last. */
  sendCode(): Promise<Challenge>
  refuse(): void
}

export type ProofWay = 'code' | 'passkey' | 'provider'

/** One question to the user. All refused operations wait for its answer. */
interface Asked {
  challenge: Challenge | undefined
  readonly answer: Promise<boolean>
  /** With whether there is a proof. */
  readonly end: (isProven: boolean) => void
  readonly fail: (error: CallsignError) => void
}

export class StepUp {
  readonly #session: Session
  readonly #keysOf: DeviceKeysOf
  readonly #authenticator: PasskeyAuthenticator | undefined
  readonly #ask: (proof: ProofNeeded) => void
  #asked: Asked | undefined
  /** Proofs so far: a request that was refused before the newest one is not asked about. */
  count = 0

  /** `ask` asks the user, or refuses where the app has no listener. */
  constructor(
    session: Session,
    keysOf: DeviceKeysOf,
    authenticator: PasskeyAuthenticator | undefined,
    ask: (proof: ProofNeeded) => void,
  ) {
    this.#session = session
    this.#keysOf = keysOf
    this.#authenticator = authenticator
    this.#ask = ask
  }

  /** Resolves once there is a proof. Rejects with the refusal, or as `giveUp` says. */
  async prove(refusal: CallsignError): Promise<void> {
    const challenge = refusal.members.challenge as Challenge | undefined
    const asked = this.#asked ?? newAsked()
    // The newest challenge is the one that the server is sure to know.
    asked.challenge = challenge ?? asked.challenge
    if (this.#asked === undefined) {
      this.#asked = asked
      this.#ask(this.#questionOf(asked, refusal))
    }
    if (!(await asked.answer)) throw refusal
  }

  /** The user is signed out. */
  giveUp(error: CallsignError): void {
    this.#asked?.fail(error)
    this.#asked = undefined
  }

  #questionOf(asked: Asked, { members }: CallsignError): ProofNeeded {
    const ways = (Array.isArray(members.ways) ? members.ways : []) as readonly ProofWay[]
    const session = this.#session
    const send = async () => {
      const reply = await session.request('POST user/step-up', { send: 'code' })
      if ('challenge' in reply) return reply.challenge
      throw new CallsignError('ANSWER_INVALID', 'The server has sent no code.')
    }
    return {
      ways: ways.filter(way => way !== 'passkey' || this.#authenticator !== undefined),
      get sentTo() {
        return asked.challenge?.sentTo
      },
      confirm: async code => {
        const { challengeId } = asked.challenge ?? {}
        if (challengeId === undefined) throw new CallsignError('CHALLENGE_GONE', 'No code was sent yet.')
        await this.#take(asked, { challengeId, otp: code.replace(/\s/g, '') }, challengeId)
      },
      byPasskey: async () => {
        const authenticator = assertPresent(this.#authenticator)
        const { options } = await session.request('POST passkey/options', undefined)
        await this.#take(asked, { passkey: await authenticator.get(options) }, options.challenge)
      },
      byProvider: (provider, signed) => this.#take(asked, { provider, ...signed }, signed.idToken),
      sendCode: async () => {
        this.#assertOpen(asked)
        const { challengeId } = asked.challenge ?? {}
        const again = challengeId === undefined ? send() : session.resendOtp({ challengeId })
        const challenge = await again.catch(error => {
          if (hasCode(error, 'CHALLENGE_GONE')) return send()
          throw error
        })
        asked.challenge = challenge
        return challenge
      },
      refuse: () => this.#end(asked, false),
    }
  }

  /** `text` is what the device signs: the server takes no proof of a listed device without. */
  async #take(asked: Asked, proof: BodyOf<'POST user/step-up'>, text: string): Promise<void> {
    const userId = this.#assertOpen(asked)
    const keys = await this.#keysOf(userId)
    const message = stepUpMessage(BigInt(userId), sha256(new TextEncoder().encode(text)))
    const deviceSignature = encodeBase64(await keys.sign(message))
    this.#assertOpen(asked)
    await this.#session.request('POST user/step-up', { ...proof, deviceSignature })
    this.#end(asked, true)
  }

  /** A question of before must not prove who another user of this app is. */
  #assertOpen(asked: Asked): string {
    const { userId } = this.#session
    if (this.#asked === asked && userId !== undefined) return userId
    throw new CallsignError('CHALLENGE_GONE', 'This is not asked any more.')
  }

  #end(asked: Asked, isProven: boolean): void {
    if (this.#asked !== asked) return
    if (isProven) this.count += 1
    this.#asked = undefined
    asked.end(isProven)
  }
}

function newAsked(): Asked {
  let [end, fail]: [Asked['end'], Asked['fail']] = [() => {}, () => {}]
  const answer = new Promise<boolean>((resolve, reject) => {
    end = resolve
    fail = reject
  })
  return { challenge: undefined, answer, end, fail }
}
