/** Watches a stay in the room: the active speaker, and how well each person, and this device, gets through. */

import { isBadSince, LinkQuality, type Quality } from './link-quality.ts'
import type { TrackSample } from './link-samples.ts'
import type { OwnSample, StreamName } from './publisher.ts'
import { Speaking } from './speaking.ts'

/** A stream that is on: packets are to come. */
export interface HeardStream extends TrackSample {
  readonly feed: string
  readonly name: StreamName
}

export class LinkWatch {
  readonly speaking = new Speaking()
  readonly #links = new Map<string, LinkQuality>()
  readonly #tell: (feed: string) => void
  #streams: readonly HeardStream[] = []
  #reports = 0
  #isAway = false
  #deafLooks = 0

  /** `tell` hears whose quality has changed. */
  constructor(tell: (feed: string) => void) {
    this.#tell = tell
  }

  qualityOf(feed: string): Quality {
    return feed === OWN && this.#isAway ? 'lost' : (this.#links.get(feed)?.quality ?? 'good')
  }

  /** While this device is out of the room, its link is lost; the members' keep their quality. */
  setAway(isAway: boolean): void {
    this.#change(OWN, () => {
      this.#isAway = isAway
    })
  }

  /** Gives whether another person speaks. */
  listen(streams: readonly HeardStream[], { level }: OwnSample): boolean {
    const voices = streams.filter(({ name }) => name === 'microphone')
    return this.speaking.look(new Map([[OWN, level], ...voices.map(one => [one.feed, one.level] as const)]))
  }

  /** Some two seconds after the last, with all feeds that are there. */
  measure(
    feeds: readonly string[],
    streams: readonly HeardStream[],
    { isSending, reports, state, isBad }: OwnSample,
  ): void {
    const before = this.#streams
    // A browser may count no reports at all.
    const isSilent = state !== 'connected' || (isSending && reports > 0 && reports === this.#reports)
    this.#streams = streams
    this.#reports = reports
    this.#look(OWN, isSilent, isBad)
    // Nothing reaches this device: that says nothing of the members.
    if (isSilent) return
    for (const feed of this.#links.keys()) if (feed !== OWN && !feeds.includes(feed)) this.#links.delete(feed)
    for (const feed of feeds) {
      const pairs = streams.flatMap(now => {
        const then = before.find(one => one.feed === now.feed && one.name === now.name)
        // A screen that does not change sends next to nothing.
        return then && now.feed === feed && now.name !== 'screen' ? [[then, now] as const] : []
      })
      const hasNone = pairs.length > 0 && pairs.every(([then, now]) => then.packets === now.packets)
      this.#look(
        feed,
        hasNone,
        pairs.some(([then, now]) => isBadSince(then, now)),
      )
    }
  }

  /**
   * After `measure`: whether nothing has come for so long that this device should join anew, although its connections are there, as
   * they say. Once, until something comes.
   */
  isDeaf(feeds: readonly string[], isConnected: boolean): boolean {
    const isLost = (feed: string) => this.qualityOf(feed) === 'lost'
    const isNow = isLost(OWN) || (feeds.length > 0 && feeds.every(isLost))
    this.#deafLooks = isNow && isConnected ? this.#deafLooks + 1 : 0
    return this.#deafLooks === DEAF_LOOKS
  }

  #look(feed: string, isSilent: boolean, isBad: boolean): void {
    const link = this.#links.get(feed) ?? new LinkQuality()
    this.#links.set(feed, link)
    this.#change(feed, () => link.look(isSilent, isBad))
  }

  #change(feed: string, change: () => void): void {
    const before = this.qualityOf(feed)
    change()
    if (this.qualityOf(feed) !== before) this.#tell(feed)
  }
}

/** This device's own voice and link, among the feeds. */
const OWN = 'own'
/** Eight seconds with those that make a link lost: connections that say that they are away have as long. */
const DEAF_LOOKS = 3
