/**
 * The challenges, their codes, and what is counted for each address (contract 2.2, 2.4). One row per code with its
 * challenges in it, one per challenge that leads to it, one per address. All methods but the constructor are
 * synchronous and to be called in a transaction, so of two requests at once one sees what the other did: two logins
 * send one code, and of any number of guesses five are compared.
 *
 *     begin    a challenge for an address, and a message with a code unless one went out lately
 *     resend   another code for a challenge
 *     confirm  a try of a challenge
 */

import { type AddressMethod, addressIdentifier } from '../domain/account.ts'
import {
  type Address,
  addChallenge,
  CHALLENGE_ID_BYTES,
  type Challenge,
  type ChallengePurpose,
  CODE_LIFETIME_MS,
  type Code,
  codeEndMs,
  codeName,
  countTry,
  decideBegin,
  decideResend,
  findChallenge,
  isAlive,
  isKept,
  purposeByAddress,
  replaceCode,
  type SendDecision,
  type SendState,
  sendWaitMs,
  triesLeft,
  withoutDead,
} from '../domain/challenge.ts'
import {
  type CodeCounts,
  countFailure,
  countSend,
  countSuccess,
  countsEndMs,
  missingForFailure,
  missingForSend,
  NO_COUNTS,
  stopLeftMs,
} from '../domain/code-counts.ts'
import { maskEmail } from '../domain/email.ts'
import { isOtp, OTP_LENGTH } from '../domain/one-time-code.ts'
import { maskPhone } from '../domain/phone.ts'
import type { SmsScope } from '../domain/sms-budget.ts'
import { SignalError } from '../errors.ts'
import { CodeSender, type CodeSenderParts } from './code-sender.ts'
import type { Database, Table } from './database.ts'
import { EXPIRY, type Expiries } from './expiries.ts'
import { textKey } from './keys.ts'
import type { SmsStop } from './sms-budget.ts'

export interface ChallengeStoreParts extends CodeSenderParts {
  readonly database: Database
  readonly expiries: Expiries
}

export interface ChallengeRequest {
  readonly purpose: ChallengePurpose
  readonly address: Address
  /** `call.network`. */
  readonly network: string
  /** Of the message: an RFC 4647 range list. */
  readonly language: string
}

/** What the client is told of a challenge (contract 2.4); times in seconds. */
export interface ChallengeReply {
  /** 22 base64url characters. */
  readonly challengeId: string
  readonly channel: 'email' | 'sms'
  readonly sentTo: string
  readonly otpLength: number
  readonly expiresIn: number
  readonly resendIn: number
  /** Set while short messages to numbers like this one reach only those that have an account. */
  readonly smsStop?: { readonly scope: SmsScope; readonly retryIn: number }
}

export interface Attempt {
  readonly challengeId: string
  readonly otp: string
  /** Whether whoever tries may confirm this: what they may not looks to them as if it were not there. */
  readonly mayConfirm: (purpose: ChallengePurpose) => boolean
}

export interface Confirmed {
  readonly kind: 'confirmed'
  readonly purpose: ChallengePurpose
  readonly address: Address
  /** That the message was asked for in, where one challenge says so: an RFC 4647 range list. */
  readonly language: string
}

export type Confirmation = Confirmed | RefusedAttempt

/** A refused attempt has been counted, so it is a result: thrown in the transaction it would be an error there. */
export interface RefusedAttempt {
  readonly kind: 'refused'
  readonly code: 'OTP_INVALID' | 'OTP_EXPIRED' | 'CHALLENGE_GONE' | 'RATE_LIMITED'
  readonly attemptsLeft?: number
  readonly waitMs?: number
}

/** A code as it is stored, and under which key. */
interface FoundCode {
  readonly key: Uint8Array
  readonly code: Code
}

export class ChallengeStore {
  readonly #parts: ChallengeStoreParts
  readonly #sender: CodeSender
  /** By `codeName`. */
  readonly #codes: Table<Code>
  /** The key of the code of each challenge. */
  readonly #codeKeys: Table<Uint8Array>
  /** By address. */
  readonly #counts: Table<CodeCounts>

  constructor(parts: ChallengeStoreParts) {
    this.#parts = parts
    this.#sender = new CodeSender(parts)
    this.#codes = parts.database.table('codes')
    this.#codeKeys = parts.database.table('challenges')
    this.#counts = parts.database.table('code-counts')
    parts.expiries.define(EXPIRY.code, (key, nowMs) => this.#expireCode(key, nowMs))
    parts.expiries.define(EXPIRY.identifier, (key, nowMs) => this.#expireCounts(key, nowMs))
  }

  /**
   * A new challenge, and a code to its address unless one went out lately. Throws, before it writes anything,
   * `RATE_LIMITED` with `retryIn` or `DELIVERY_UNAVAILABLE`.
   */
  begin(request: ChallengeRequest, nowMs: number): ChallengeReply {
    const { purpose, address, network, language } = request
    const key = textKey(codeName(address, purpose))
    const last = this.#readCode(key, nowMs)
    const decision = this.#decided(decideBegin(this.#sendState(address, last), nowMs), address)
    if (last === undefined) this.#forgetEnded(key)
    const id = this.#parts.randomBytes(CHALLENGE_ID_BYTES)
    const challenge: Challenge = { id, tries: 0, purpose, address, network, language }
    const stop = this.#sender.stopOf(challenge, nowMs)
    const shared = decision.kind === 'share' ? decision.code : this.#send(challenge, last, stop, nowMs)
    const { code, displaced } = addChallenge(shared, challenge)
    if (displaced !== undefined) this.#codeKeys.remove(displaced.id)
    this.#codeKeys.put(id, key)
    this.#putCode(key, code)
    return this.#reply(code, challenge, stop, nowMs)
  }

  /** Throws what `begin` would: to be asked first by whoever writes other things in the same transaction. */
  assertCanBegin({ purpose, address }: ChallengeRequest, nowMs: number): void {
    const last = this.#readCode(textKey(codeName(address, purpose)), nowMs)
    this.#decided(decideBegin(this.#sendState(address, last), nowMs), address)
  }

  /**
   * Another code for the challenge of this id, in the place of the last one; the lifetime begins anew, the tries do
   * not. While short messages to a number are stopped, the code of a login goes by mail where that is asked for: to the
   * mail address of the number's account, or nowhere, and the answer does not say which. Throws, before it writes
   * anything, `CHALLENGE_GONE`, `OTP_COOLDOWN`, `RATE_LIMITED`, `DELIVERY_UNAVAILABLE`, and `VALIDATION_FAILED` for a
   * channel that does not lead to the address.
   */
  resend(challengeId: string, channel: ChallengeReply['channel'] | undefined, nowMs: number): ChallengeReply {
    const found = this.#findByChallenge(challengeId, nowMs)
    if (found === undefined) throw refusalOf(GONE)
    const { key, code, challenge } = found
    const { address } = challenge
    const stop = this.#sender.stopOf(challenge, nowMs)
    const isByMail = channel !== undefined && channel !== CHANNEL_OF[address.kind]
    if (isByMail && !this.#leadsElsewhere(challenge, stop)) throw otherChannel()
    this.#decided(decideResend(this.#sendState(address, code), nowMs), address)
    const sent = isByMail
      ? this.#sendByMail(challenge, code, nowMs)
      : this.#send(challenge, code, stop, nowMs)
    this.#putCode(key, sent)
    const reply = this.#reply(sent, challenge, stop, nowMs)
    return isByMail ? { ...reply, channel: 'email', sentTo: MASK } : reply
  }

  /**
   * A try of a challenge. An accepted code is gone with all challenges that refer to it. A refusal has been counted,
   * so it is returned: commit first, then throw `refusalOf` it.
   */
  confirm({ challengeId, otp, mayConfirm }: Attempt, nowMs: number): Confirmation {
    const found = this.#findByChallenge(challengeId, nowMs)
    if (found === undefined || !mayConfirm(found.challenge.purpose)) return GONE
    const { id, purpose, address, language } = found.challenge
    return this.#try(found, id, otp, { kind: 'confirmed', purpose, address, language }, nowMs)
  }

  /**
   * A try of a login by one who names the address, for clients that know no challenges. It has tries of its own, so
   * that nobody uses up those of a challenge by naming its address.
   */
  confirmLogin(address: Address, otp: string, nowMs: number): Confirmation {
    const key = textKey(codeName(address, { kind: 'login' }))
    const code = this.#readCode(key, nowMs)
    if (code === undefined || triesLeft(code, undefined) === 0) return GONE
    const waitMs = missingForFailure(this.#readCounts(address), nowMs)
    if (waitMs > 0) return { kind: 'refused', code: 'RATE_LIMITED', waitMs }
    const confirmed = { kind: 'confirmed', purpose: purposeByAddress(code), address, language: '' } as const
    return this.#try({ key, code }, undefined, otp, confirmed, nowMs)
  }

  #try(
    { key, code }: FoundCode,
    challengeId: Uint8Array | undefined,
    otp: string,
    confirmed: Confirmed,
    nowMs: number,
  ): Confirmation {
    const counts = this.#readCounts(confirmed.address)
    if (stopLeftMs(counts, nowMs) > 0) return GONE
    if (!isAlive(code, nowMs)) return EXPIRED
    // The try is counted before the code is looked at: whatever happens between the two, it is not free.
    const tried = countTry(code, challengeId)
    this.#codes.put(key, tried)
    if (isOtp(this.#parts.secrets.codePepper, code.codeId, code.hash, otp)) {
      this.#removeCode({ key, code })
      this.#putCounts(confirmed.address, countSuccess(counts))
      const { network = '' } = findChallenge(code, challengeId) ?? code.challenges[0] ?? {}
      if (code.isByMail !== true) {
        this.#sender.countConfirmed({ address: confirmed.address, network }, nowMs)
      }
      return confirmed
    }
    const failed = countFailure(counts, nowMs)
    this.#putCounts(confirmed.address, failed)
    const isStopped = stopLeftMs(failed, nowMs) > 0
    if (isStopped) this.#stop({ key, code }, confirmed.address, nowMs)
    else this.#removeDead({ key, code: tried })
    const attemptsLeft = isStopped ? 0 : triesLeft(tried, challengeId)
    return { kind: 'refused', code: 'OTP_INVALID', attemptsLeft }
  }

  /** The code is gone with its challenges, and whoever reads what is sent to the address is told, once. */
  #stop(found: FoundCode, address: Address, nowMs: number): void {
    this.#removeCode(found)
    this.#sender.tellStopped(address, nowMs)
  }

  #removeDead({ key, code }: FoundCode): void {
    const living = withoutDead(code)
    if (living.challenges.length === code.challenges.length) return
    for (const { id } of code.challenges)
      if (findChallenge(living, id) === undefined) this.#codeKeys.remove(id)
    this.#codes.put(key, living)
  }

  /** Throws instead of a decision to wait, and when a code would have to be sent and can't be. */
  #decided(decision: SendDecision, address: Address): Exclude<SendDecision, { kind: 'wait' }> {
    if (decision.kind === 'wait') throw waitRefusal(decision)
    // Also where nothing would be sent now: whether a code is on its way is nobody's business.
    this.#sender.assertChannel(address)
    return decision
  }

  #sendState(address: Address, code: Code | undefined): SendState {
    return { code, counts: this.#readCounts(address), isTest: this.#sender.isTest(address) }
  }

  /** Sends a code in the place of the last one, and counts that; the caller keeps it. */
  #send(challenge: Challenge, last: Code | undefined, stop: SmsStop | undefined, nowMs: number): Code {
    const { address } = challenge
    const recipient = this.#sender.recipientOf(address, stop)
    const code = replaceCode(last, this.#sender.send(challenge, recipient, nowMs), nowMs)
    // Counted while it is stopped, messages to accounts would make the stop longer and so give them away.
    if (stop === undefined) this.#sender.countSent(challenge, nowMs)
    if (this.#sender.isTest(address)) return { ...code, sendCount: 1 }
    this.#countSend(address, nowMs)
    return code
  }

  /** The same by mail. It counts for both addresses, so that a number is no way to send more to a mailbox. */
  #sendByMail(challenge: Challenge, last: Code, nowMs: number): Code {
    const mail = this.#sender.mailOf(challenge.address)
    const mayMail = mail !== undefined && missingForSend(this.#readCounts(mail), nowMs) === 0
    const sent = this.#sender.send(challenge, mayMail ? mail : undefined, nowMs)
    if (mayMail) this.#countSend(mail, nowMs)
    this.#countSend(challenge.address, nowMs)
    return { ...replaceCode(last, sent, nowMs), isByMail: true }
  }

  #leadsElsewhere({ purpose, address }: Challenge, stop: SmsStop | undefined): boolean {
    const isOfNumber = address.kind === 'phone' && purpose.kind === 'login'
    return isOfNumber && stop !== undefined && this.#sender.canMail()
  }

  #countSend(address: Address, nowMs: number): void {
    this.#putCounts(address, countSend(this.#readCounts(address), nowMs))
  }

  #reply(code: Code, { id, address }: Challenge, stop: SmsStop | undefined, nowMs: number): ChallengeReply {
    const counts = this.#readCounts(address)
    const reply = {
      challengeId: Buffer.from(id).toString('base64url'),
      channel: CHANNEL_OF[address.kind],
      sentTo: address.kind === 'email' ? maskEmail(address.key) : maskPhone(address.key),
      otpLength: OTP_LENGTH,
      expiresIn: Math.ceil((code.sentAtMs + CODE_LIFETIME_MS - nowMs) / 1000),
      resendIn: Math.ceil(sendWaitMs(code, counts, nowMs) / 1000),
    }
    if (stop === undefined) return reply
    return { ...reply, smsStop: { scope: stop.scope, retryIn: Math.ceil((stop.untilMs - nowMs) / 1000) } }
  }

  #findByChallenge(
    challengeId: string,
    nowMs: number,
  ): (FoundCode & { readonly challenge: Challenge }) | undefined {
    if (!CHALLENGE_ID_FORM.test(challengeId)) return undefined
    const id = Buffer.from(challengeId, 'base64url')
    const key = this.#codeKeys.get(id)
    const code = key === undefined ? undefined : this.#readCode(key, nowMs)
    const challenge = code === undefined ? undefined : findChallenge(code, id)
    if (key === undefined || code === undefined || challenge === undefined) return undefined
    return { key, code, challenge }
  }

  /** Undefined for a code that does not matter any more, whether it was swept or not. */
  #readCode(key: Uint8Array, nowMs: number): Code | undefined {
    const code = this.#codes.get(key)
    return code !== undefined && isKept(code, nowMs) ? code : undefined
  }

  #putCode(key: Uint8Array, code: Code): void {
    const isNew = !this.#codes.doesExist(key)
    this.#codes.put(key, code)
    if (isNew) this.#parts.expiries.add(EXPIRY.code, codeEndMs(code), key)
  }

  /** What is left of a code that does not matter any more and was not swept yet. */
  #forgetEnded(key: Uint8Array): void {
    const code = this.#codes.get(key)
    if (code !== undefined) this.#removeCode({ key, code })
  }

  #removeCode({ key, code }: FoundCode): void {
    this.#codes.remove(key)
    for (const { id } of code.challenges) this.#codeKeys.remove(id)
  }

  #readCounts(address: Address): CodeCounts {
    return this.#counts.get(countsKey(address)) ?? NO_COUNTS
  }

  #putCounts(address: Address, counts: CodeCounts): void {
    const key = countsKey(address)
    const isNew = !this.#counts.doesExist(key)
    this.#counts.put(key, counts)
    if (isNew) this.#parts.expiries.add(EXPIRY.identifier, countsEndMs(counts), key)
  }

  #expireCode(key: Uint8Array, nowMs: number): number | undefined {
    const code = this.#codes.get(key)
    if (code === undefined) return undefined
    if (nowMs < codeEndMs(code)) return codeEndMs(code)
    this.#removeCode({ key, code })
    return undefined
  }

  #expireCounts(key: Uint8Array, nowMs: number): number | undefined {
    const counts = this.#counts.get(key)
    if (counts === undefined) return undefined
    if (nowMs < countsEndMs(counts)) return countsEndMs(counts)
    this.#counts.remove(key)
    return undefined
  }
}

/** The error that a refused attempt is answered with. */
export function refusalOf({ code, attemptsLeft, waitMs }: RefusedAttempt): SignalError {
  if (waitMs !== undefined) return waitRefusal({ code, waitMs })
  const members = attemptsLeft === undefined ? {} : { attemptsLeft }
  return new SignalError(code, SENTENCES[code], { members })
}

function waitRefusal({ code, waitMs }: { readonly code: WaitCode; readonly waitMs: number }): SignalError {
  const retryIn = Math.ceil(waitMs / 1000)
  const members = { retryIn, scope: 'identifier' }
  return new SignalError(code, `${SENTENCES[code]}, wait ${retryIn} s`, { members })
}

function otherChannel(): SignalError {
  const errors = [{ pointer: '/channel', code: 'CHANNEL', detail: 'does not lead to the address' }]
  return new SignalError('VALIDATION_FAILED', '/channel does not lead to the address', { errors })
}

function countsKey({ kind, key }: Address): Uint8Array {
  return textKey(addressIdentifier(kind, key))
}

type WaitCode = RefusedAttempt['code'] | 'OTP_COOLDOWN'

const GONE: RefusedAttempt = { kind: 'refused', code: 'CHALLENGE_GONE' }
const EXPIRED: RefusedAttempt = { kind: 'refused', code: 'OTP_EXPIRED' }
const SENTENCES: Record<WaitCode, string> = {
  OTP_INVALID: 'the code does not match',
  OTP_EXPIRED: 'the code is too old: have another one sent',
  CHALLENGE_GONE: 'the challenge is over: begin again',
  OTP_COOLDOWN: 'a code was sent a moment ago',
  RATE_LIMITED: 'too many codes for this address',
}
/** Of a mail address that may not be there. */
const MASK = '•••'
const CHANNEL_OF: Record<AddressMethod['kind'], 'email' | 'sms'> = { email: 'email', phone: 'sms' }
/** 16 bytes; the last character holds two of their bits, and no other spelling is taken. */
const CHALLENGE_ID_FORM = /^[A-Za-z0-9_-]{21}[AQgw]$/
