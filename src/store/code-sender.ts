/**
 * Makes codes and puts them into the outbox (contract 2.2): which channel leads to an address, whether it works and is
 * paid for, and the fixed codes of test addresses, to which nothing is sent.
 */

import type { AddressMethod } from '../domain/account.ts'
import { type Address, type Challenge, CODE_LIFETIME_MS, type Code } from '../domain/challenge.ts'
import { CODE_ID_BYTES, hashOtp, newOtp } from '../domain/one-time-code.ts'
import type { Letter } from '../domain/outgoing.ts'
import type { Secrets } from '../domain/secrets.ts'
import { SignalError } from '../errors.ts'
import type { OutboxStore } from './outbox-store.ts'
import type { SmsBudget } from './sms-budget.ts'

export interface CodeSenderParts {
  readonly outbox: Pick<OutboxStore, 'add'>
  readonly secrets: Pick<Secrets, 'codePepper'>
  readonly randomBytes: (length: number) => Uint8Array
  /** Whether mails or short messages can be sent at all. */
  readonly canSend: (channel: 'mail' | 'sms') => boolean
  /** Fixed codes by the key of their address: nothing is sent to it, and limits of sending do not apply. */
  readonly testCodes: ReadonlyMap<string, string>
  /** Left out where the rates of contract 8 are switched off. */
  readonly smsBudget?: Pick<SmsBudget, 'missingMs' | 'countSent' | 'countConfirmed' | 'takeLetter'>
}

export class CodeSender {
  readonly #parts: CodeSenderParts

  constructor(parts: CodeSenderParts) {
    this.#parts = parts
  }

  /** Whether nothing is sent to this address. */
  isTest({ key }: Address): boolean {
    return this.#parts.testCodes.has(key)
  }

  /** Throws `DELIVERY_UNAVAILABLE` when nothing can be sent to such an address. */
  assertChannel(address: Address): void {
    const { canSend } = this.#parts
    if (!this.isTest(address) && !canSend(CHANNEL_OF[address.kind])) throw undeliverable(address, {})
  }

  /** Throws `DELIVERY_UNAVAILABLE` with `retryIn` when the budget of messages is used up. */
  assertPaidFor(address: Address, nowMs: number): void {
    if (!this.#isCharged(address)) return
    const waitMs = this.#parts.smsBudget?.missingMs(address.key, nowMs) ?? 0
    if (waitMs > 0) throw undeliverable(address, { retryIn: Math.ceil(waitMs / 1000) })
  }

  /** In a transaction: sends a new code for the challenge, or what its address gets instead, and returns its hash. */
  send({ purpose, address, language }: Challenge, nowMs: number): Pick<Code, 'codeId' | 'hash'> {
    const { randomBytes, secrets, testCodes, smsBudget } = this.#parts
    const otp = testCodes.get(address.key) ?? newOtp(randomBytes)
    const codeId = randomBytes(CODE_ID_BYTES)
    const isTaken = purpose.kind === 'bind' && purpose.isTaken === true
    const letter: Letter = isTaken
      ? { kind: 'address-tried' }
      : { kind: 'otp', otp, lifetimeS: CODE_LIFETIME_MS / 1000, binds: purpose.kind === 'bind' }
    this.#write(address, language, letter, CODE_LIFETIME_MS, nowMs)
    if (this.#isCharged(address)) smsBudget?.countSent(address.key, nowMs)
    return { codeId, hash: hashOtp(secrets.codePepper, codeId, otp) }
  }

  /** In a transaction: a code that was sent to this address was accepted. */
  countConfirmed(address: Address, nowMs: number): void {
    if (this.#isCharged(address)) this.#parts.smsBudget?.countConfirmed(address.key, nowMs)
  }

  /**
   * In a transaction: whoever reads what is sent to the address hears that its codes are stopped; by SMS as long as
   * the day's budget lasts.
   */
  tellStopped(address: Address, nowMs: number): void {
    if (this.#isCharged(address) && this.#parts.smsBudget?.takeLetter(nowMs) === false) return
    this.#write(address, '', { kind: 'codes-stopped' }, STOPPED_TOLD_WITHIN_MS, nowMs)
  }

  #isCharged(address: Address): boolean {
    return address.kind === 'phone' && !this.isTest(address)
  }

  #write(address: Address, language: string, letter: Letter, withinMs: number, nowMs: number): void {
    if (this.isTest(address)) return
    const channel = CHANNEL_OF[address.kind]
    const message = { channel, to: address.key, language, letter, expiresAtMs: nowMs + withinMs }
    this.#parts.outbox.add(message, nowMs)
  }
}

function undeliverable({ kind }: Address, members: { readonly retryIn?: number }): SignalError {
  return new SignalError('DELIVERY_UNAVAILABLE', `no codes can be sent by ${kind} now`, { members })
}

const CHANNEL_OF: Record<AddressMethod['kind'], 'mail' | 'sms'> = { email: 'mail', phone: 'sms' }
/** After a day the codes are back. */
const STOPPED_TOLD_WITHIN_MS = 86_400_000
