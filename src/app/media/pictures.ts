/** Which pictures are asked of the gateway, and in which size: what the app shows of them, as far as the line carries it. */

import { Adaptation } from './adaptation.ts'
import type { StreamName } from './publisher.ts'

export type PictureSize = 'large' | 'small' | 'none'

/** A stream with a picture that a member sends. */
export interface Picture {
  readonly feed: string
  readonly name: StreamName
  readonly isOn: boolean
}

/** As Janus names it. */
export interface Wanted {
  readonly send: boolean
  /** 0 is the small one. */
  readonly substream: number
  /** 0 has a quarter of the pictures. */
  readonly temporal: number
}

export class Pictures {
  readonly adaptation = new Adaptation()
  /** How many the app shows. */
  count = 0
  /** Whether members send two sizes: from three people on. */
  hasSmall = false
  readonly #max: number
  readonly #speakers: () => readonly string[]
  readonly #sizes = new Map<string, PictureSize>()
  #wanted: ReadonlyMap<string, Wanted> = new Map()
  #paused: ReadonlySet<string> = new Set()

  /** No more than `max` at once; `speakers` are feeds of those who spoke last, the latest first. */
  constructor(max: number, speakers: () => readonly string[]) {
    this.#max = max
    this.#speakers = speakers
  }

  resize(feed: string, name: StreamName, size: PictureSize): void {
    this.#sizes.set(nameOf(feed, name), size)
  }

  wanted(feed: string, name: StreamName): Wanted {
    return this.#wanted.get(nameOf(feed, name)) ?? WHOLE
  }

  isPaused(feed: string, name: StreamName): boolean {
    return this.#paused.has(nameOf(feed, name))
  }

  /** Decides anew, for the pictures that there are. */
  decide(all: readonly Picture[]): void {
    this.hasSmall = new Set(all.map(({ feed }) => feed)).size > 1
    const speakers = this.#speakers()
    const rank = ({ feed, name }: Picture) => {
      const spoke = speakers.indexOf(feed)
      const place = spoke < 0 ? speakers.length : spoke
      // A shared screen comes right after the latest speaker.
      return name === 'screen' ? 0.5 : place
    }
    const shown = all.filter(({ feed, name, isOn }) => isOn && this.#sizeOf(feed, name) !== 'none')
    const ranked = shown.toSorted((one, other) => rank(one) - rank(other)).slice(0, this.#max)
    const { rung, shown: proven } = this.adaptation
    const places = new Map(ranked.map(({ feed, name }, place) => [nameOf(feed, name), place]))
    const placeOf = ({ feed, name }: Picture) => places.get(nameOf(feed, name)) ?? Number.POSITIVE_INFINITY
    this.#wanted = new Map(
      all.map(picture => {
        const place = placeOf(picture)
        const isLarge = place < rung.large && this.#sizeOf(picture.feed, picture.name) === 'large'
        const wanted = {
          send: place < rung.pictures || !picture.isOn,
          substream: isLarge || !this.hasSmall ? 1 : 0,
          temporal: rung.isSlow ? 0 : 2,
        }
        return [nameOf(picture.feed, picture.name), wanted] as const
      }),
    )
    const paused = all.filter(picture => picture.isOn && placeOf(picture) >= proven.pictures)
    this.#paused = new Set(paused.map(({ feed, name }) => nameOf(feed, name)))
    this.count = ranked.length
  }

  #sizeOf(feed: string, name: StreamName): PictureSize {
    return this.#sizes.get(nameOf(feed, name)) ?? 'large'
  }
}

function nameOf(feed: string, name: StreamName): string {
  return `${feed} ${name}`
}

export const WHOLE: Wanted = { send: true, substream: 1, temporal: 2 }
