/** Elements that play members' streams. An element's size and visibility decide which picture the gateway is asked for. */

import type { MediaParticipant } from './media-participants.ts'
import type { PictureSize } from './pictures.ts'
import type { StreamName } from './publisher.ts'

interface Tile {
  readonly feed: string
  readonly names: Set<StreamName>
  readonly stream: MediaStream
  width: number
  isSeen: boolean
}

type Resize = (feed: string, name: StreamName, size: PictureSize) => void

export class Tiles {
  readonly #resize: Resize
  readonly #tiles = new Map<Element, Tile>()
  readonly #observers: readonly (ResizeObserver | IntersectionObserver)[]
  readonly #onVisibility = () => this.#askAll()

  constructor(resize: Resize) {
    this.#resize = resize
    const note = (entries: readonly Partial<IntersectionObserverEntry & ResizeObserverEntry>[]) => {
      for (const { target, isIntersecting, contentRect } of entries) {
        const tile = this.#tiles.get(target!)
        if (tile === undefined) continue
        tile.isSeen = isIntersecting ?? tile.isSeen
        tile.width = contentRect?.width ?? tile.width
      }
      this.#askAll()
    }
    this.#observers = [new ResizeObserver(note), new IntersectionObserver(note)]
    document.addEventListener('visibilitychange', this.#onVisibility)
  }

  /** An element may show several streams of one feed: its sound and its picture. */
  show(feed: string, name: StreamName, element: HTMLMediaElement): void {
    const known = this.#tiles.get(element)
    if (known?.feed === feed) {
      known.names.add(name)
    } else {
      const tile = { feed, names: new Set([name]), stream: new MediaStream(), width: ANY, isSeen: true }
      this.#tiles.set(element, tile)
      element.srcObject = tile.stream
      for (const observer of this.#observers) observer.observe(element)
    }
  }

  /** Gives the elements the tracks that are on. */
  update(participant: MediaParticipant): void {
    for (const { feed, names, stream } of this.#tiles.values()) {
      if (feed !== participant.feed) continue
      const tracks = [...names].flatMap(name => {
        const one = participant[name]
        return one?.isOn ? [one.track] : []
      })
      for (const track of stream.getTracks()) if (!tracks.includes(track)) stream.removeTrack(track)
      for (const track of tracks) stream.addTrack(track)
    }
  }

  forget(feed: string): void {
    for (const [element, tile] of this.#tiles) if (tile.feed === feed) this.#drop(element)
  }

  end(): void {
    document.removeEventListener('visibilitychange', this.#onVisibility)
    for (const element of this.#tiles.keys()) this.#drop(element)
  }

  #drop(element: Element): void {
    this.#tiles.delete(element)
    for (const observer of this.#observers) observer.unobserve(element)
  }

  /** The largest tile of a stream decides. */
  #askAll(): void {
    const sizes = new Map<string, number>()
    for (const [element, { feed, names, width, isSeen }] of this.#tiles) {
      const isShown =
        document.pictureInPictureElement === element || (isSeen && document.visibilityState === 'visible')
      const pixels = isShown ? width * devicePixelRatio : 0
      for (const name of names) {
        const key = `${feed} ${name}`
        sizes.set(key, Math.max(sizes.get(key) ?? 0, pixels))
      }
    }
    for (const [key, pixels] of sizes) {
      const [feed, name] = key.split(' ') as [string, StreamName]
      this.#resize(feed, name, pixels === 0 ? 'none' : pixels > SMALL_PIXELS ? 'large' : 'small')
    }
  }
}

/** Until it is laid out. */
const ANY = Number.POSITIVE_INFINITY
/** The small size has 320. */
const SMALL_PIXELS = 400
