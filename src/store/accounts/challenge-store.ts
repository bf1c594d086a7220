/**
 * The challenges, their codes, and the counts for each address (contract 2.2, 2.4). One row per code with its
 * challenges in it, one per challenge that leads to it, one per address. Changes run one after
 * the other, so of two requests at once one sees what the other did: two logins send one code, and five of any number
 * of guesses are compared.
 *
 *     begin    a challenge for an address, and a message with a code unless one went out lately
 *     resend   another code for a challenge
 *     confirm  a try of a challenge
 */

import type { AddressMethod } from '../../domain/accounts/account.ts'
import {
  type Address,
  addChallenge,
  askerOf,
  CHALLENGE_ID_BYTES,
  type Challenge,
  type ChallengePurpose,
  CODE_LIFETIME_MS,
  type Code,
  codeName,
  countTry,
  decideBegin,
  decideResend,
  isAlive,
  purposeByAddress,
  repeatCode,
  replaceCode,
  type SendDecision,
  type SendState,
  sendWaitMs,
  type Trier,
  triesLeft,
  withoutAsker,
  withoutDead,
} from '../../domain/accounts/challenge.ts'
import {
  countFailure,
  countSend,
  countSuccess,
  missingForChallenge,
  missingForSend,
  missingForTry,
  stopLeftMs,
} from '../../domain/accounts/code-counts.ts'
import { maskEmail } from '../../domain/accounts/email.ts'
import type { Asker } from '../../domain/accounts/known-sign-in.ts'
import { isOtp, OTP_LENGTH } from '../../domain/accounts/one-time-code.ts'
import { maskPhone } from '../../domain/accounts/phone.ts'
import type { SmsScope, SmsStop } from '../../domain/accounts/sms-budget.ts'
import type { CountedNetwork } from '../../domain/network.ts'
import { SignalError } from '../../errors.ts'
import type { Expiries } from '../engine/expiries.ts'
import type { Change, View } from '../engine/store.ts'
import { CodeCountTable } from './code-count-table.ts'
import { type CodeMessage, CodeSender, type CodeSenderDeps } from './code-sender.ts'
import { CodeTable, type FoundCode } from './code-table.ts'
import type { GuessWatch } from './guess-watch.ts'
import type { AskerTraits, KnownSignInStore } from './known-sign-ins.ts'

export interface ChallengeStoreDeps extends CodeSenderDeps {
  readonly expiries: Expiries
  readonly knownSignIns: Pick<KnownSignInStore, 'askerOf' | 'knowsPrefix'>
  readonly guessWatch: Pick<GuessWatch, 'missingMs' | 'count'>
}

export interface ChallengeRequest extends AskerTraits {
  readonly purpose: ChallengePurpose
  readonly address: Address
  /** Language of the message: an RFC 4647 range list. */
  readonly language: string
  /** The client's, for the operator's login check. */
  readonly attestation?: string | undefined
}

export interface ResendRequest extends AskerTraits {
  readonly challengeId: string
  /** That the client asks for; the address's own if left out. */
  readonly channel?: 'email' | 'sms' | undefined
  readonly attestation?: string | undefined
}

/** The client's view of a challenge (contract 2.4); times in seconds. */
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

/** A refused attempt has been counted, so it is a result: a change that throws is taken back, count and all. */
export interface RefusedAttempt {
  readonly kind: 'refused'
  readonly code: 'OTP_INVALID' | 'OTP_EXPIRED' | 'CHALLENGE_GONE' | 'RATE_LIMITED'
  readonly attemptsLeft?: number
  readonly waitMs?: number
}

interface Sending extends CodeMessage {
  readonly asker: Asker
}

/** A request for a code, or a try of one: how the account knows the asker, the network, and the code's address. */
interface AskedFrom {
  readonly asker: Asker
  readonly network: string
  readonly address: Address
}

/** An attempt at a code: the digits typed, how the account knows the person, and where the code was asked for. */
interface Trying {
  readonly otp: string
  readonly trier: Trier
  readonly asker: Asker
  readonly network: string
}

export class ChallengeStore {
  readonly #deps: ChallengeStoreDeps
  readonly #sender: CodeSender
  readonly #codes: CodeTable
  readonly #counts: CodeCountTable

  constructor(deps: ChallengeStoreDeps) {
    this.#deps = deps
    this.#sender = new CodeSender(deps)
    this.#codes = new CodeTable(deps.expiries)
    this.#counts = new CodeCountTable(deps.expiries)
  }

  /**
   * A new challenge, and a code to its address unless one went out lately. Throws, before it writes anything,
   * `RATE_LIMITED` with `retryIn` or `DELIVERY_UNAVAILABLE`.
   */
  begin(change: Change, request: ChallengeRequest): ChallengeReply {
    const { nowMs } = change
    const { purpose, address, network, language, attestation } = request
    const key = this.#codes.keyOf(codeName(address, purpose))
    const last = this.#codes.read(change, key, nowMs)
    const asker = this.#askerOf(change, request, nowMs)
    this.#assertNotSlowed(change, { asker, network, address }, nowMs)
    const decision = this.#decided(decideBegin(this.#sendState(change, address, asker, last), nowMs), address)
    if (last === undefined) this.#codes.forgetEnded(change, key)
    const id = this.#deps.randomBytes(CHALLENGE_ID_BYTES)
    const known = asker === 'stranger' ? {} : { asker }
    const challenge: Challenge = { id, tries: 0, purpose, address, network, language, ...known }
    const stop = this.#sender.stopOf(change, challenge)
    const recipient = this.#sender.recipientOf(change, address, stop)
    const sending = { challenge, asker, recipient, stop, attestation }
    const shared = decision.kind === 'share' ? decision.code : this.#send(change, sending, last)
    const { code, displaced } = addChallenge(shared, challenge)
    if (displaced !== undefined) this.#codes.removeChallenge(change, displaced.id)
    this.#codes.addChallenge(change, id, key)
    this.#codes.put(change, key, code)
    return this.#reply(change, code, sending)
  }

  /**
   * Another code for the challenge of this id, in the place of the last one; the lifetime begins anew, the tries do
   * not. While short messages to a number are stopped, the code of a login goes by mail where that is asked for: to the
   * mail address of the number's account, or nowhere, and the answer does not say which. Throws, before it writes
   * anything, `CHALLENGE_GONE`, `OTP_COOLDOWN`, `RATE_LIMITED`, `DELIVERY_UNAVAILABLE`, and `VALIDATION_FAILED` for a
   * channel that does not lead to the address.
   */
  resend(change: Change, { challengeId, channel, attestation, ...traits }: ResendRequest): ChallengeReply {
    const { nowMs } = change
    const found = this.#codes.findByChallenge(change, challengeId, nowMs)
    if (found === undefined) throw refusalOf(GONE)
    const { key, code, challenge } = found
    const { address } = challenge
    const stop = this.#sender.stopOf(change, challenge)
    const isByMail = channel !== undefined && channel !== CHANNEL_OF[address.kind]
    if (isByMail && !this.#leadsElsewhere(challenge, stop)) throw otherChannel()
    const asker = this.#askerOfHolder(change, challenge, traits, nowMs)
    const decision = this.#decided(
      decideResend(this.#sendState(change, address, asker, code), nowMs),
      address,
    )
    const recipient = isByMail
      ? this.#mailRecipient(change, challenge, asker, nowMs)
      : this.#sender.recipientOf(change, address, stop)
    const sending = { challenge, asker, recipient, stop, attestation }
    const sent =
      decision.kind === 'again'
        ? this.#sendAgain(change, sending, code, decision)
        : this.#send(change, sending, code)
    this.#codes.put(change, key, sent)
    const reply = this.#reply(change, sent, sending)
    return isByMail ? { ...reply, channel: 'email', sentTo: MASK } : reply
  }

  /** The address of a challenge, where there is one. */
  addressOf(view: View, challengeId: string, nowMs: number): Address | undefined {
    return this.#codes.findByChallenge(view, challengeId, nowMs)?.challenge.address
  }

  /**
   * A try of a challenge. An accepted code is gone with all challenges that refer to it. A refusal has been counted,
   * so it is returned: commit first, then throw `refusalOf` it.
   */
  confirm(change: Change, { challengeId, otp, mayConfirm }: Attempt): Confirmation {
    const found = this.#codes.findByChallenge(change, challengeId, change.nowMs)
    if (found === undefined || !mayConfirm(found.challenge.purpose)) return GONE
    const { id, purpose, address, language, network } = found.challenge
    const confirmed = { kind: 'confirmed', purpose, address, language } as const
    const trier = { kind: 'holder', challengeId: id } as const
    const trying = { otp, trier, asker: askerOf(found.challenge), network }
    return this.#try(change, found, trying, confirmed)
  }

  /**
   * A try of a login by one who names the address, for clients that know no challenges. It has tries of its own, so
   * that nobody uses up those of a challenge by naming its address.
   */
  confirmLogin(change: Change, address: Address, otp: string, network: string): Confirmation {
    const { nowMs } = change
    const key = this.#codes.keyOf(codeName(address, { kind: 'login' }))
    const code = this.#codes.read(change, key, nowMs)
    const asker = this.#deps.knownSignIns.askerOf(change, address, { network }, nowMs)
    const trier = { kind: 'by-address', asker } as const
    if (code === undefined || triesLeft(code, trier) === 0) return GONE
    const waitMs = missingForChallenge(this.#counts.read(change, address), asker, nowMs)
    if (waitMs > 0) return { kind: 'refused', code: 'RATE_LIMITED', waitMs }
    const confirmed = { kind: 'confirmed', purpose: purposeByAddress(code), address, language: '' } as const
    return this.#try(change, { key, code }, { otp, trier, asker, network }, confirmed)
  }

  #try(
    change: Change,
    { key, code }: FoundCode,
    { otp, trier, asker, network }: Trying,
    confirmed: Confirmed,
  ): Confirmation {
    const { nowMs } = change
    const { address } = confirmed
    const counts = this.#counts.read(change, address)
    if (stopLeftMs(counts, asker, nowMs) > 0) return GONE
    if (!isAlive(code, nowMs)) return EXPIRED
    const slowedMs = this.#slowedMs(change, { asker, network, address }, nowMs)
    const waitMs = Math.max(slowedMs, missingForTry(counts, asker, nowMs))
    if (waitMs > 0) return { kind: 'refused', code: 'RATE_LIMITED', waitMs }
    // The try is counted before the code is looked at: whatever happens between the two, it is not free.
    const tried = countTry(code, trier)
    this.#codes.put(change, key, tried)
    const isAccepted = isOtp(this.#deps.secrets.codePepper, code.codeId, code.hash, otp)
    this.#deps.guessWatch.count(change, { asker, network, isAccepted })
    if (isAccepted) {
      this.#codes.remove(change, { key, code })
      this.#counts.put(change, address, countSuccess(counts))
      if (code.isByMail !== true) this.#sender.countConfirmed(change, { address, network })
      return confirmed
    }
    const failed = countFailure(counts, asker, nowMs)
    this.#counts.put(change, address, failed)
    this.#codes.removeDead(change, { key, code: tried })
    const stopped = STOPPABLE.filter(
      each => stopLeftMs(failed, each, nowMs) > stopLeftMs(counts, each, nowMs),
    )
    if (stopped.length > 0) this.#stop(change, { key, code: tried }, stopped, address)
    const attemptsLeft = stopped.includes(asker) ? 0 : triesLeft(tried, trier)
    return { kind: 'refused', code: 'OTP_INVALID', attemptsLeft }
  }

  /** Removes the challenges with stopped codes, and tells the owner of the address, once. */
  #stop(change: Change, { key, code }: FoundCode, stopped: readonly Asker[], address: Address): void {
    const left = stopped.reduce(withoutAsker, withoutDead(code))
    if (left.challenges.length === 0) this.#codes.remove(change, { key, code })
    else this.#codes.keep(change, { key, code }, left)
    this.#sender.tellStopped(change, address)
  }

  /** Throws `RATE_LIMITED` where a network has guessed while many do. */
  #assertNotSlowed(view: View, asked: AskedFrom, nowMs: number): void {
    const waitMs = this.#slowedMs(view, asked, nowMs)
    if (waitMs > 0) throw waitRefusal({ code: 'RATE_LIMITED', waitMs })
  }

  #slowedMs(view: View, { address, ...asked }: AskedFrom, nowMs: number): number {
    const { guessWatch, knownSignIns } = this.#deps
    const isKnown = (prefix: CountedNetwork) => knownSignIns.knowsPrefix(view, address, prefix, nowMs)
    return guessWatch.missingMs(view, asked, isKnown, nowMs)
  }

  /** Throws instead of a decision to wait, and when a code would have to be sent and can't be. */
  #decided<Decision extends SendDecision>(
    decision: Decision,
    address: Address,
  ): Exclude<Decision, { kind: 'wait' }> {
    if (decision.kind === 'wait') throw waitRefusal(decision)
    // Also where nothing would be sent now: the answer must not say whether a code is on its way.
    this.#sender.assertChannel(address)
    return decision as Exclude<Decision, { kind: 'wait' }>
  }

  #sendState(view: View, address: Address, asker: Asker, code: Code | undefined): SendState {
    return { code, counts: this.#counts.read(view, address), asker, isTest: this.#sender.isTest(address) }
  }

  /** A person who steps up holds a session of the account. */
  #askerOf(view: View, { purpose, address, ...traits }: ChallengeRequest, nowMs: number): Asker {
    if (purpose.kind === 'step-up') return 'token'
    return this.#deps.knownSignIns.askerOf(view, address, traits, nowMs)
  }

  /** The holder of a known asker's challenge is that asker, in whatever network. */
  #askerOfHolder(view: View, challenge: Challenge, traits: AskerTraits, nowMs: number): Asker {
    const before = askerOf(challenge)
    return before === 'stranger' ? this.#askerOf(view, { ...challenge, ...traits }, nowMs) : before
  }

  /** Sends a code in the place of the last one, and counts that; the caller keeps it. */
  #send(change: Change, sending: Sending, last: Code | undefined): Code {
    const { asker, recipient } = sending
    const { address } = sending.challenge
    const code = replaceCode(last, this.#sender.send(change, sending), asker, change.nowMs)
    if (this.#sender.isTest(address)) return { ...code, sendCount: 1 }
    this.#countSend(change, address, asker)
    if (recipient === undefined || recipient.key === address.key) return code
    // Likewise for the mailbox: a number is no way to send more to it.
    this.#countSend(change, recipient, asker)
    return { ...code, isByMail: true }
  }

  /** Sends the living code again. The cooldown bounds how often, so that the counts need not know. */
  #sendAgain(
    change: Change,
    sending: Sending,
    code: Code,
    { sealed, waitMs }: { readonly sealed: Uint8Array; readonly waitMs: number },
  ): Code {
    const otp = this.#sender.open(sealed)
    if (otp === undefined) throw waitRefusal({ code: 'RATE_LIMITED', waitMs })
    const expiresAtMs = code.sentAtMs + CODE_LIFETIME_MS
    this.#sender.sendOtp(change, sending, { otp, expiresAtMs })
    return repeatCode(code, sending.asker, change.nowMs)
  }

  /** The mail address of the number's account, as long as it may be sent to. */
  #mailRecipient(view: View, { address }: Challenge, asker: Asker, nowMs: number): Address | undefined {
    const mail = this.#sender.mailOf(view, address)
    const mayMail = mail !== undefined && missingForSend(this.#counts.read(view, mail), asker, nowMs) === 0
    return mayMail ? mail : undefined
  }

  #leadsElsewhere({ purpose, address }: Challenge, stop: SmsStop | undefined): boolean {
    const isOfNumber = address.kind === 'phone' && purpose.kind === 'login'
    return isOfNumber && stop !== undefined && this.#sender.canMail()
  }

  #countSend(change: Change, address: Address, asker: Asker): void {
    this.#counts.put(change, address, countSend(this.#counts.read(change, address), asker, change.nowMs))
  }

  #reply(change: Change, code: Code, { challenge: { id, address }, asker, stop }: Sending): ChallengeReply {
    const { nowMs } = change
    const state = { code, counts: this.#counts.read(change, address), asker }
    const reply = {
      challengeId: Buffer.from(id).toString('base64url'),
      channel: CHANNEL_OF[address.kind],
      sentTo: address.kind === 'email' ? maskEmail(address.key) : maskPhone(address.key),
      otpLength: OTP_LENGTH,
      expiresIn: Math.ceil((code.sentAtMs + CODE_LIFETIME_MS - nowMs) / 1000),
      resendIn: Math.ceil(sendWaitMs(state, nowMs) / 1000),
    }
    if (stop === undefined) return reply
    return { ...reply, smsStop: { scope: stop.scope, retryIn: Math.ceil((stop.untilMs - nowMs) / 1000) } }
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

type WaitCode = RefusedAttempt['code'] | 'OTP_COOLDOWN'

const STOPPABLE: readonly Asker[] = ['stranger', 'network', 'token']
const GONE: RefusedAttempt = { kind: 'refused', code: 'CHALLENGE_GONE' }
const EXPIRED: RefusedAttempt = { kind: 'refused', code: 'OTP_EXPIRED' }
const SENTENCES: Record<WaitCode, string> = {
  OTP_INVALID: 'the code does not match',
  OTP_EXPIRED: 'the code is too old: have another one sent',
  CHALLENGE_GONE: 'the challenge is over: begin again',
  OTP_COOLDOWN: 'a code was sent a moment ago',
  RATE_LIMITED: 'too many codes for this address',
}
/** Stands for a mail address that may not be there. */
const MASK = '•••'
const CHANNEL_OF: Record<AddressMethod['kind'], 'email' | 'sms'> = { email: 'email', phone: 'sms' }
