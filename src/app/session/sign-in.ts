/** By what a user signs in: codes that are sent to them, asked for and sent back, and the address of the session. */

import { type CallsignError, hasCode } from '../callsign-error.ts'
import { type AppStorage, readStored, writeStored } from '../storage/storage.ts'
import type { Challenge } from '../wire.ts'
import type { BodyOf } from './operations.ts'
import type { Session } from './session.ts'

export interface Question
  extends Pick<Challenge, 'channel' | 'sentTo' | 'otpLength' | 'expiresIn' | 'resendIn'> {
  /** Why the last code was refused; its `members.attemptsLeft` says how many more may be tried. */
  readonly error?: CallsignError
  /**
   * Sends another code, after `resendIn` seconds. Resolves with the seconds until the next one may be sent. `more` has what
   * the operator's check asks of the app.
   */
  readonly resend: (more?: Pick<BodyOf<'POST resend-otp'>, 'attestation'>) => Promise<number>
}

/** Asks the user for the code that was sent. A rejection ends the sign-in. */
export type Confirm = (question: Question) => Promise<string> | string

/** Resolves as `send`, once it takes the code. */
export async function confirmed<Reply>(
  session: Session,
  challenge: Challenge,
  confirm: Confirm,
  send: (code: string) => Promise<Reply>,
): Promise<Reply> {
  const { challengeId } = challenge
  let question: Question = {
    ...challenge,
    resend: async more => (await session.resendOtp({ challengeId, ...more })).resendIn,
  }
  for (;;) {
    const code = await confirm(question)
    try {
      return await send(code.replace(/\s/g, ''))
    } catch (error) {
      if (!hasCode(error, 'OTP_INVALID') || error.members.attemptsLeft === 0) throw error
      question = { ...question, error }
    }
  }
}

/** Whether the user's session was begun by this address, or this provider. */
export async function isSignedInBy(
  storage: AppStorage,
  userId: string | undefined,
  address: string,
): Promise<boolean> {
  const kept = await readStored<Address>(storage, ADDRESS, isAddress)
  return kept !== undefined && kept.userId === userId && kept.address === normalized(address)
}

/** The user of the last session. */
export async function lastUserId(storage: AppStorage): Promise<string | undefined> {
  return (await readStored<Address>(storage, ADDRESS, isAddress))?.userId
}

/** Notes how the user's session was begun. */
export async function keepAddress(storage: AppStorage, userId: string, address: string): Promise<void> {
  await writeStored(storage, ADDRESS, { userId, address: normalized(address) })
}

/** By whom, and how, the session was begun. */
interface Address {
  readonly userId: string
  readonly address: string
}

function isAddress({ userId, address }: Readonly<Record<string, unknown>>): boolean {
  return typeof userId === 'string' && typeof address === 'string'
}

/** Addresses that sign in to the same account. */
export function normalized(address: string): string {
  return address.trim().toLowerCase()
}

const ADDRESS = 'address'
