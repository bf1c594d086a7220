/** The active speaker, from how loud each voice is at each look. Pure: a cough changes nothing, nor does a pause for breath. */

export class Speaking {
  #active: string | undefined
  #latest: readonly string[] = []
  /** 0 to `FULL`: one more at each look that hears the voice, one fewer at each that does not. */
  readonly #scores = new Map<string, number>()

  /** The active speaker. */
  get active(): string | undefined {
    return this.#active
  }

  /** Voices that were active, the latest first. */
  get latest(): readonly string[] {
    return this.#latest
  }

  /** Takes the loudness of each voice that is there, 0 to 1. Gives whether there is another active speaker, or none. */
  look(levels: ReadonlyMap<string, number>): boolean {
    const before = this.#active
    for (const voice of this.#scores.keys()) if (!levels.has(voice)) this.#scores.delete(voice)
    for (const [voice, level] of levels) {
      const step = level >= LOUD ? 1 : level < QUIET ? -1 : 0
      this.#scores.set(voice, Math.min(Math.max(this.#scoreOf(voice) + step, 0), FULL))
    }
    this.#latest = this.#latest.filter(voice => levels.has(voice))
    const [first, score] = [...this.#scores].reduce((most, one) => (one[1] > most[1] ? one : most), NONE)
    const present = this.#scoreOf(this.#active)
    if (present === 0) this.#active = score >= BEGUN ? first : undefined
    // A voice that interrupts waits until the active speaker pauses.
    else if (score === FULL && present < FULL) this.#active = first
    if (this.#active === before) return false
    if (this.#active !== undefined)
      this.#latest = [this.#active, ...this.#latest.filter(voice => voice !== this.#active)]
    return true
  }

  #scoreOf(voice: string | undefined): number {
    return this.#scores.get(voice ?? '') ?? 0
  }
}

const NONE: readonly [string, number] = ['', 0]
/** Speech, not the noise of a room. */
const LOUD = 0.03
const QUIET = 0.015
const BEGUN = 2
const FULL = 4
