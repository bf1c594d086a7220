/** The exports of `callsign/app/media`. */

export {
  CallMedia,
  type CallMediaEvents,
  type CallMediaOptions,
  joinMedia,
  type MediaCall,
} from './call-media.ts'
export type { FrameFailure } from './frame-cryptor.ts'
export {
  type Admission,
  GatewayMedia,
  type GatewayMediaOptions,
  type MediaEvents,
  type MediaParticipant,
  type MediaState,
  type MediaStatistics,
  type ParticipantStatistics,
  type RemoteStream,
} from './gateway-media.ts'
export type { StreamName, VideoCodec } from './publisher.ts'
