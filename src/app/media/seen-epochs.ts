/** Which devices in a call were seen to have a new key: a frame that it opens came from each. */

import type { CallMember } from '../calls/call.ts'

export class SeenEpochs {
  /** The newest epoch of each feed's frames. */
  readonly #ofFeed = new Map<string, number>()

  note(feed: string, epoch: number): void {
    this.#ofFeed.set(feed, epoch)
  }

  /** Whether each participant who has joined, but for this user, has the key of this epoch or a newer one. */
  haveAll(
    epoch: number,
    participants: readonly Pick<CallMember, 'userId' | 'state' | 'feedIds'>[],
    ownUserId: string | undefined,
  ): boolean {
    const others = participants.filter(one => one.state === 'joined' && one.userId !== ownUserId)
    return others.every(({ feedIds = [] }) => feedIds.some(id => (this.#ofFeed.get(`${id}`) ?? 0) >= epoch))
  }
}
