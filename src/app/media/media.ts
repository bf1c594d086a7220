/** The exports of `@callsign/sdk/app/media`. */

export {
  CallMedia,
  type CallMediaEvents,
  type CallMediaOptions,
  joinMedia,
  type MediaCall,
} from './call-media.ts'
export type { FrameFailure } from './frame-cryptor.ts'
export { GatewayMedia, type MediaEvents, type MediaState } from './gateway-media.ts'
export type { Quality } from './link-quality.ts'
export type { MediaParticipant, RemoteStream } from './media-participants.ts'
export type { MediaStatistics, ParticipantStatistics } from './media-statistics.ts'
export type { PictureSize } from './pictures.ts'
export type { StreamName, VideoCodec } from './publisher.ts'
export type { Admission, GatewayMediaOptions } from './room-stay.ts'
