/**
 * Letters to the addresses of a user about their account, put into the outbox by the change of what they tell of
 * (contract 2.8, 2.9). Whoever takes an account over by one method can't keep the others from hearing of it.
 */

import { type AddressMethod, isAddress } from '../../domain/accounts/account.ts'
import type { MethodId, UserId } from '../../domain/ids.ts'
import type { Letter } from '../../domain/messages/outbox-message.ts'
import type { Change, View } from '../engine/store.ts'
import type { OutboxStore } from '../messages/outbox-store.ts'
import type { AccountStore } from './account-store.ts'
import type { SmsBudget } from './sms-budget.ts'

export class AccountLetters {
  readonly #accounts: Pick<AccountStore, 'read' | 'methodsOf'>
  readonly #outbox: Pick<OutboxStore, 'add'>
  /** Identifiers of reviewers and tests (contract 2.2): nothing is sent to them. */
  readonly #isTestIdentifier: (key: string) => boolean
  /** Left out where the rates of contract 8 are switched off. */
  readonly #smsBudget: Pick<SmsBudget, 'takeLetter'> | undefined

  constructor(
    accounts: Pick<AccountStore, 'read' | 'methodsOf'>,
    outbox: Pick<OutboxStore, 'add'>,
    isTestIdentifier: (key: string) => boolean,
    smsBudget?: Pick<SmsBudget, 'takeLetter'>,
  ) {
    this.#accounts = accounts
    this.#outbox = outbox
    this.#isTestIdentifier = isTestIdentifier
    this.#smsBudget = smsBudget
  }

  /** To every address that the user has now, but one. */
  tellAll(change: Change, userId: UserId, letter: Letter, exceptMethodId?: MethodId): void {
    for (const method of this.addressesOf(change, userId)) {
      if (method.id !== exceptMethodId) this.tell(change, userId, method, letter)
    }
  }

  addressesOf(view: View, userId: UserId): AddressMethod[] {
    return this.#accounts.methodsOf(view, userId).filter(isAddress)
  }

  /** To one address, in the language of the user. */
  tell(
    change: Change,
    userId: UserId,
    { kind, key }: Pick<AddressMethod, 'kind' | 'key'>,
    letter: Letter,
  ): void {
    if (this.#isTestIdentifier(key)) return
    // Else whoever changes the primary method to and fro has as many messages paid for as they like. The user's other
    // addresses and devices are told all the same.
    if (kind === 'phone' && this.#smsBudget?.takeLetter(change) === false) return
    const channel = kind === 'email' ? 'mail' : 'sms'
    const language = this.#accounts.read(change, userId)?.acceptLanguage ?? ''
    const expiresAtMs = change.nowMs + SENT_WITHIN_MS
    this.#outbox.add(change, { channel, to: key, language, letter, expiresAtMs })
  }
}

/** A letter about an account that could not be sent for three days tells nothing new. */
const SENT_WITHIN_MS = 3 * 86_400_000
