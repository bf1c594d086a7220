/** Brings one's own tracks to the other people in one call, and theirs here. */
export interface Carrier {
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
