/** Events about users: one at the end of each change, however often it writes the user. */

import type { User } from '../../domain/accounts/account.ts'
import type { UserId } from '../../domain/ids.ts'
import type { ChangedMember } from '../../domain/operators/webhook-event.ts'
import { USERS } from '../accounts/account-tables.ts'
import { idsKey } from '../engine/keys.ts'
import type { Change } from '../engine/store.ts'
import type { Webhooks } from './webhook-store.ts'

interface Noted {
  isNew: boolean
  readonly changed: Set<ChangedMember>
}

export class UserEvents {
  readonly #webhooks: Pick<Webhooks, 'add'>

  constructor(webhooks: Pick<Webhooks, 'add'>) {
    this.#webhooks = webhooks
  }

  /** The user's row is written. */
  onPut(change: Change, userId: UserId, before: User | undefined, after: User): void {
    if (before === undefined) this.#noted(change, userId).isNew = true
    else this.onChanged(change, userId, ...changedMembers(before, after))
  }

  onChanged(change: Change, userId: UserId, ...changed: readonly ChangedMember[]): void {
    if (changed.length === 0) return
    const noted = this.#noted(change, userId)
    for (const member of changed) noted.changed.add(member)
  }

  /** The user is about to be removed. */
  onRemoving(change: Change, userId: UserId): void {
    this.#webhooks.add(change, { kind: 'user.ended', userId })
  }

  #noted(change: Change, userId: UserId): Noted {
    const users = change.local(this, () => new Map<UserId, Noted>())
    const known = users.get(userId)
    if (known !== undefined) return known
    const noted: Noted = { isNew: false, changed: new Set() }
    users.set(userId, noted)
    change.atEnd(() => this.#tell(change, userId, noted))
    return noted
  }

  #tell(change: Change, userId: UserId, { isNew, changed }: Noted): void {
    const user = change.get(USERS, idsKey(userId))
    // Erased since.
    if (user === undefined) return
    if (isNew) return this.#webhooks.add(change, { kind: 'user.created', userId })
    const { erasesAtMs } = user
    this.#webhooks.add(change, {
      ...{ kind: 'user.changed', userId, changed: [...changed] },
      ...(erasesAtMs !== undefined && { erasesAtMs }),
    })
  }
}

function changedMembers(before: User, after: User): ChangedMember[] {
  const changed: ChangedMember[] = []
  if (before.displayName !== after.displayName) changed.push('displayName')
  if (!isSame(before.settings, after.settings)) changed.push('settings')
  if (before.externalId !== after.externalId) changed.push('externalId')
  if (!isSame(before.contactData, after.contactData)) changed.push('contactData')
  if (before.primaryMethodId !== after.primaryMethodId) changed.push('loginMethods')
  if (before.erasesAtMs !== after.erasesAtMs) changed.push('erasesAt')
  return changed
}

/** Whether two plain objects have the same members. */
function isSame(one: object = {}, other: object = {}): boolean {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].every(name => one[name as keyof object] === other[name as keyof object])
}
