/** How well the media of one person, or this device's own, gets through. Pure: worse soon, better only after a while. */

import type { TrackSample } from './link-samples.ts'

export type Quality = 'good' | 'poor' | 'lost'

export class LinkQuality {
  quality: Quality = 'good'
  #silent = 0
  /** 0 to `BAD_MAX`: one more at each bad look, one fewer at each other. */
  #bad = 0

  /**
   * One look, some two seconds after the last: `isSilent` if nothing came although something was to come, `isBad` if so much was lost
   * that a person hears or sees it.
   */
  look(isSilent: boolean, isBad: boolean): void {
    this.#silent = isSilent ? this.#silent + 1 : 0
    this.#bad = isBad ? Math.min(this.#bad + 1, BAD_MAX) : Math.max(this.#bad - 1, 0)
    if (this.#silent >= SILENT_LOOKS) {
      this.#bad = BAD_MAX
      this.quality = 'lost'
    } else if (this.#bad === 0) this.quality = 'good'
    else if (this.#bad >= BAD_LOOKS && !isSilent) this.quality = 'poor'
  }
}

/** Whether so much of a stream was lost since the sample before. */
export function isBadSince(before: TrackSample, now: TrackSample): boolean {
  const since = (name: 'packets' | 'lost' | 'played' | 'concealed' | 'freezes') => now[name] - before[name]
  return (
    since('lost') > LOST_MAX * since('packets') ||
    since('concealed') > CONCEALED_MAX * since('played') ||
    since('freezes') > 0
  )
}

const SILENT_LOOKS = 2
const BAD_LOOKS = 2
const BAD_MAX = 3
const LOST_MAX = 0.05
const CONCEALED_MAX = 0.1
