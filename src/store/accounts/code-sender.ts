/**
 * Makes codes and puts them into the outbox (contract 2.2): which channel leads to an address, whether it works and is
 * paid for, and the fixed codes of test addresses, to which nothing is sent.
 *
 * Where the budget of messages stops a number, a number with an account gets its message all the same and another number
 * gets none. Both are answered alike, with the stop: its asker learns nothing about accounts.
 */

import { type AddressMethod, identifierOf } from '../../domain/accounts/account.ts'
import { type Address, type Challenge, CODE_LIFETIME_MS, type Code } from '../../domain/accounts/challenge.ts'
import { codeCheckOf } from '../../domain/accounts/code-check.ts'
import { CODE_ID_BYTES, hashOtp, newOtp } from '../../domain/accounts/one-time-code.ts'
import type { SmsStop } from '../../domain/accounts/sms-budget.ts'
import type { Letter, OutboxMessage } from '../../domain/messages/outbox-message.ts'
import type { Secrets } from '../../domain/secrets.ts'
import { SignalError } from '../../errors.ts'
import type { Change, View } from '../engine/store.ts'
import type { OutboxStore } from '../messages/outbox-store.ts'
import { Sealed } from '../tables/sealed.ts'
import type { AccountStore } from './account-store.ts'
import type { PaidMessage, SmsBudget } from './sms-budget.ts'

type LetterMessage = Extract<OutboxMessage, { readonly letter: Letter }>

/** The message's owner, and its asker. */
type Asked = Pick<Challenge, 'address' | 'network'>

/** A message with a code. */
export interface CodeMessage {
  readonly challenge: Challenge
  /** Empty where the number is stopped and has no account. */
  readonly recipient: Address | undefined
  /** Stops messages to numbers like this one. None counts against their budget during the stop. */
  readonly stop: SmsStop | undefined
  /** For the operator's login check. */
  readonly attestation?: string | undefined
}

export interface CodeSenderDeps {
  readonly accounts: Pick<AccountStore, 'ownerOf' | 'methodsOf'>
  readonly outbox: Pick<OutboxStore, 'add'>
  readonly secrets: Pick<Secrets, 'codePepper' | 'seal'>
  readonly randomBytes: (length: number) => Uint8Array
  /** Whether mails or short messages can be sent at all. */
  readonly canSend: (channel: 'mail' | 'sms') => boolean
  /** Fixed codes by the key of their address: nothing is sent to it, and limits of sending do not apply. */
  readonly testCodes: ReadonlyMap<string, string>
  /** Whether the operator's login check is asked before a code leaves. */
  readonly isChecked?: boolean
  /** Left out where the rates of contract 8 are switched off. */
  readonly smsBudget?: Pick<SmsBudget, 'stopOf' | 'countSent' | 'countConfirmed' | 'takeLetter'>
}

export class CodeSender {
  readonly #deps: CodeSenderDeps
  readonly #sealed: Sealed

  constructor(deps: CodeSenderDeps) {
    this.#deps = deps
    this.#sealed = new Sealed(deps.secrets, deps.randomBytes, 'code')
  }

  /** Whether nothing is sent to this address. */
  isTest({ key }: Address): boolean {
    return this.#deps.testCodes.has(key)
  }

  canMail(): boolean {
    return this.#deps.canSend('mail')
  }

  /** Throws `DELIVERY_UNAVAILABLE` when nothing can be sent to such an address. */
  assertChannel({ kind, key }: Address): void {
    const { canSend, testCodes } = this.#deps
    if (testCodes.has(key) || canSend(CHANNEL_OF[kind])) return
    throw new SignalError('DELIVERY_UNAVAILABLE', `no codes can be sent by ${kind} now`)
  }

  /** The stop of messages to numbers like this one; undefined when there is none. */
  stopOf(change: Change, asked: Asked): SmsStop | undefined {
    return this.#isCharged(asked.address) ? this.#deps.smsBudget?.stopOf(change, paid(asked)) : undefined
  }

  /** Where a code for the address goes: to itself, or nowhere while it is stopped and has no account. */
  recipientOf(view: View, address: Address, stop: SmsStop | undefined): Address | undefined {
    return stop === undefined || this.#deps.accounts.ownerOf(view, identifierOf(address)) !== undefined
      ? address
      : undefined
  }

  /** The mail address that the account of the address signs in with too; undefined where there is none. */
  mailOf(view: View, address: Address): AddressMethod | undefined {
    const owner = this.#deps.accounts.ownerOf(view, identifierOf(address))
    const methods = owner === undefined ? [] : this.#deps.accounts.methodsOf(view, owner.userId)
    return methods.find((method): method is AddressMethod => method.kind === 'email')
  }

  /** Makes a new code for the challenge and sends it to the recipient. */
  send(change: Change, message: CodeMessage): Pick<Code, 'codeId' | 'hash' | 'sealed'> {
    const { randomBytes, secrets, testCodes } = this.#deps
    const otp = testCodes.get(message.challenge.address.key) ?? newOtp(randomBytes)
    const codeId = randomBytes(CODE_ID_BYTES)
    this.sendOtp(change, message, { otp, expiresAtMs: change.nowMs + CODE_LIFETIME_MS })
    const sealed = this.#sealed.seal(Buffer.from(otp))
    return { codeId, hash: hashOtp(secrets.codePepper, codeId, otp), sealed }
  }

  /** The code that was sealed; undefined when another secret has sealed it. */
  open(sealed: Uint8Array): string | undefined {
    const otp = this.#sealed.open(sealed)
    return otp === undefined ? undefined : Buffer.from(otp).toString()
  }

  /** Sends a code that is good until then, and counts it against the budget. */
  sendOtp(
    change: Change,
    message: CodeMessage,
    { otp, expiresAtMs }: { readonly otp: string; readonly expiresAtMs: number },
  ): void {
    const { challenge, recipient, stop } = message
    if (recipient === undefined) return
    // Counted while it is stopped, messages to accounts would make the stop longer and so give them away.
    const isCharged = stop === undefined && this.#isCharged(challenge.address)
    if (isCharged) this.#deps.smsBudget?.countSent(change, paid(challenge))
    const { purpose, language } = challenge
    const isTaken = purpose.kind === 'bind' && purpose.isTaken === true
    const lifetimeS = Math.ceil((expiresAtMs - change.nowMs) / MINUTE_MS) * 60
    const letter: Letter = isTaken
      ? { kind: 'address-tried' }
      : { kind: 'otp', otp, lifetimeS, binds: purpose.kind === 'bind' }
    const check = this.#checkOf(change, message, recipient, isCharged)
    this.#write(change, recipient, { language, letter, expiresAtMs, ...check })
  }

  /** Has the message wait for the operator's login check, and the check begin once it is durable. */
  #checkOf(
    change: Change,
    { challenge, attestation }: CodeMessage,
    recipient: Address,
    isCharged: boolean,
  ): Pick<LetterMessage, 'check'> {
    if (this.#deps.isChecked !== true || this.isTest(recipient)) return {}
    const id = Buffer.from(this.#deps.randomBytes(CHECK_ID_BYTES)).toString('base64url')
    const charged = { network: challenge.network, atMs: change.nowMs }
    const check = { ...codeCheckOf(id, recipient, challenge), ...(isCharged ? { charged } : {}) }
    change.happened({
      kind: 'code-to-check',
      code: { channel: CHANNEL_OF[recipient.kind], check, attestation },
    })
    return { check }
  }

  /** A code that was asked for so was accepted. */
  countConfirmed(change: Change, asked: Asked): void {
    if (this.#isCharged(asked.address)) this.#deps.smsBudget?.countConfirmed(change, paid(asked))
  }

  /**
   * Tells the owner of the address that its codes are stopped; by SMS while the day's budget lasts.
   */
  tellStopped(change: Change, address: Address): void {
    if (this.#isCharged(address) && this.#deps.smsBudget?.takeLetter(change) === false) return
    const expiresAtMs = change.nowMs + STOPPED_TOLD_WITHIN_MS
    this.#write(change, address, { language: '', letter: { kind: 'codes-stopped' }, expiresAtMs })
  }

  #isCharged(address: Address): boolean {
    return address.kind === 'phone' && !this.isTest(address)
  }

  #write(change: Change, address: Address, message: Omit<LetterMessage, 'channel' | 'to'>): void {
    if (this.isTest(address)) return
    this.#deps.outbox.add(change, { channel: CHANNEL_OF[address.kind], to: address.key, ...message })
  }
}

function paid({ address, network }: Asked): PaidMessage {
  return { number: address.key, network }
}

const CHANNEL_OF: Record<AddressMethod['kind'], 'mail' | 'sms'> = { email: 'mail', phone: 'sms' }
const MINUTE_MS = 60_000
const CHECK_ID_BYTES = 16
/** After a day the codes are back. */
const STOPPED_TOLD_WITHIN_MS = 86_400_000
