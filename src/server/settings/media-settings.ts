/** Settings of the media gateways: of one kind, or none. */

import type { MediaSettings } from '../../media/media-settings.ts'
import type { EnvironmentReader } from './environment.ts'
import { readJanusSettings } from './janus-settings.ts'

/** None of them set: calls have their media without a gateway of ours. */
export function readMediaSettings(reader: EnvironmentReader): { readonly media?: MediaSettings } {
  const media = readJanusSettings(reader)
  return media === undefined ? {} : { media }
}
