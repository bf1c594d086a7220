/** The media gateways as the settings have them now: SIGHUP reads their list anew. */

import type { MediaSettings } from './media-settings.ts'

export class CurrentMedia {
  #settings: MediaSettings | undefined
  readonly #watchers = new Set<(settings: MediaSettings) => void>()

  constructor(settings: MediaSettings | undefined) {
    this.#settings = settings
  }

  get settings(): MediaSettings | undefined {
    return this.#settings
  }

  /**
   * Watchers hear of it once `tellOthers` has settled: other processes make tokens for a new gateway before it gets calls.
   */
  async replace(
    settings: MediaSettings,
    tellOthers: () => Promise<unknown> = async () => undefined,
  ): Promise<void> {
    this.#settings = settings
    await tellOthers()
    if (this.#settings === settings) for (const watcher of this.#watchers) watcher(settings)
  }

  /** Calls `watcher` with all that come later, until the returned function is called. */
  watch(watcher: (settings: MediaSettings) => void): () => void {
    this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
  }
}

/** Why a running server can't take these settings in the place of the present ones; undefined where it can. */
export function refusalOfMedia(
  present: MediaSettings | undefined,
  next: MediaSettings | undefined,
): string | undefined {
  if (present?.kind !== next?.kind) return 'another kind of media gateway, or none, needs a restart'
  if (present?.kind !== 'janus' || next?.kind !== 'janus') return undefined
  const [one, other] = [present.events, next.events]
  return one?.host === other?.host && one?.port === other?.port
    ? undefined
    : 'CALLSIGN_JANUS_EVENTS_HOST and CALLSIGN_JANUS_EVENTS_PORT need a restart'
}
