import type { CallsignError } from '../../src/app/app.ts'

/** Brings one's own tracks to the other people in one call, and theirs here. */
export interface Carrier {
  /** Nothing comes from any of the other people: it is this device's own link that is lost. */
  readonly isLinkLost?: boolean
  /** Why no more comes or goes in this call. */
  readonly failure?: CallsignError | undefined
  /** Starts sending one's camera and microphone. */
  send(local: MediaStream): void
  close(): void
  mute?(isMuted: boolean): void
  coverCamera?(camera: MediaStreamTrack | undefined): void
  shareScreen?(screen: MediaStreamTrack | undefined): void
  /** Someone has come or gone. */
  onParticipants?(): void
  onKey?(): void
  /** The page is connected again. */
  onConnected?(): void
}
