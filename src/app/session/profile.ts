/** The signed-in user and their badge, as an app shows them: as they were read last, with what the queue has told since. */

import type { Badge, QueueEvent, User } from '../wire.ts'
import type { Account } from './account.ts'

export class Profile {
  user: User | undefined
  badge: Badge | undefined
  /** The newest reading of the user, and the events that came during it. */
  #reading: { profile?: User } | undefined

  /** Gives whether the user is as it was read now: else a newer reading is under way. */
  async read(account: Account): Promise<boolean> {
    const reading: { profile?: User } = {}
    this.#reading = reading
    const user = await account.read()
    if (this.#reading !== reading) return false
    this.user = reading.profile ?? user
    return true
  }

  onEvent(event: QueueEvent): void {
    if (event.type === 'profile_changed') {
      this.user = event
      if (this.#reading !== undefined) this.#reading.profile = event
    }
    if (event.type === 'badge') this.badge = event
    else if ('badge' in event) this.badge = event.badge
  }
}
