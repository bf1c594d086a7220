/** Settings of the media gateways: of one kind, or none. */

import type { MediaSettings } from '../../media/media-settings.ts'
import type { EnvironmentReader } from './environment.ts'
import { readJanusSettings } from './janus-settings.ts'
import { readLiveKitSettings } from './livekit-settings.ts'

/** None of them set: calls have their media without a gateway of ours. */
export function readMediaSettings(reader: EnvironmentReader): { readonly media?: MediaSettings } {
  const [janus, livekit] = [readJanusSettings(reader), readLiveKitSettings(reader)]
  if (janus !== undefined && livekit !== undefined)
    reader.problems.push(
      'CALLSIGN_JANUS_… and CALLSIGN_LIVEKIT_… are both set: calls have one kind of gateway',
    )
  const media = janus ?? livekit
  return media === undefined ? {} : { media }
}
