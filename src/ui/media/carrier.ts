/** How a call's media travels: by a gateway, or from device to device. */

import type { Call } from '../../app/app.ts'
import type { Quality, StreamName } from '../../app/media/media.ts'
import type { MediaPeer } from './media-view.ts'

/** Brings one's own tracks to the other people in one call, and theirs here. Says by `onChange` that a member has changed. */
export interface Carrier {
  readonly peers: readonly MediaPeer[]
  /** How well this device gets through. */
  readonly quality: Quality
  /** Whether this device's own voice is the one that speaks. */
  readonly isSpeaking: boolean
  /** Why no more comes or goes in this call: a sentence. */
  readonly problem: string | undefined
  /** Sends the track, or nothing without one. */
  send(name: StreamName, track: MediaStreamTrack | undefined): void
  mute(isMuted: boolean): void
  close(): void
  /** Someone has come or gone. */
  onParticipants?(): void
  onKey?(): void
  /** The page is connected again. */
  onConnected?(): void
}

type NewCarrier = (call: Call, onChange: () => void) => Promise<Carrier>

const others = new Map<string, NewCarrier>()

/** Has calls whose `media.kind` is this one carried by it. */
export function carryBy(kind: string, make: NewCarrier): void {
  others.set(kind, make)
}

export function carrierFor(kind: string | undefined): NewCarrier | undefined {
  return others.get(kind ?? '')
}
