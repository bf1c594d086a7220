/** Media gateways as their operator has set them up: any number of Janus, or one LiveKit. */

import type { JanusEventsSettings, JanusSettings } from './janus-settings.ts'
import type { LiveKitSettings } from './livekit-settings.ts'

export type MediaSettings = JanusMediaSettings | LiveKitMediaSettings

export interface JanusMediaSettings {
  readonly kind: 'janus'
  /** At least one, each with a name of its own. */
  readonly gateways: readonly JanusSettings[]
  /** Where all of them send their events. */
  readonly events?: JanusEventsSettings
}

export interface LiveKitMediaSettings {
  readonly kind: 'livekit'
  readonly livekit: LiveKitSettings
}

/** Where devices connect, for the banner and the console. */
export function clientUrlsOf(media: MediaSettings | undefined): readonly string[] {
  if (media === undefined) return []
  return media.kind === 'livekit' ? [media.livekit.url] : media.gateways.map(({ clientUrl }) => clientUrl)
}
