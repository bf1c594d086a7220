/** Picture and sound of a call, for pages to draw. */

import type { Quality } from '../../app/media/media.ts'

export interface MediaView {
  /** The own microphone and camera, as far as they are open. */
  readonly local: MediaStream | undefined
  /** The own screen, while it is shown. */
  readonly screen: MediaStream | undefined
  readonly canShareScreen: boolean
  /** Why picture or sound does not come or go: a sentence. */
  readonly problem: string | undefined
  /** Whether there is a microphone that can be switched on. */
  readonly hasMicrophone: boolean
  readonly hasCamera: boolean
  readonly isMuted: boolean
  readonly isCameraOff: boolean
  readonly isSpeaking: boolean
  /** The microphone hears a voice, and is muted: say so. */
  readonly isSpeakingMuted: boolean
  /** Whether other people's sound is on. */
  readonly isSoundOn: boolean
  readonly peers: readonly MediaPeer[]
  /** How well this device gets through. */
  readonly quality: Quality
  /** Said once, for nothing comes from any of them. */
  readonly isLinkLost: boolean
}

export interface MediaPeer {
  /** Names its streams on the page. */
  readonly id: string
  /** Undefined while the server gives the feed no user. */
  readonly userId: string | undefined
  /**
   * `gone`: it was connected and closed its page; `unreachable`: it never was connected, and no way is left to try;
   * `undecryptable`: what it sends does not open with the call's keys.
   */
  readonly state:
    | 'connecting'
    | 'connected'
    | 'weak'
    | 'interrupted'
    | 'gone'
    | 'unreachable'
    | 'undecryptable'
  /** How well their sound and picture get here. */
  readonly quality: Quality
  readonly hasStream: boolean
  readonly hasPicture: boolean
  readonly hasScreen: boolean
  /** Plays its sound and picture, or its screen, in this element. */
  readonly play: (video: HTMLVideoElement, isScreen: boolean) => void
  readonly isMuted: boolean
  readonly isSpeaking: boolean
}

export const NO_MEDIA: MediaView = {
  local: undefined,
  screen: undefined,
  canShareScreen: false,
  problem: undefined,
  hasMicrophone: false,
  hasCamera: false,
  isMuted: false,
  isCameraOff: false,
  isSpeaking: false,
  isSpeakingMuted: false,
  isSoundOn: true,
  peers: [],
  quality: 'good',
  isLinkLost: false,
}
