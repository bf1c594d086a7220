/** Which tiles a call shows: screens, the people in it, and this user's own picture. */

import type { Call, CallMember } from '../../app/app.ts'
import type { MediaPeer, MediaView } from '../media/media-view.ts'
import { word } from '../words.ts'

export interface Tile {
  readonly key: string
  readonly kind: 'person' | 'own' | 'screen'
  readonly name: string
  /** Plays in its video element, if anything comes. */
  readonly stream: Stream | undefined
  /** Without one the tile has the person's letter. */
  readonly hasPicture: boolean
  readonly isMuted: boolean
  readonly isSpeaking: boolean
  /** Why picture and sound are poor or missing. */
  readonly trouble: string | undefined
  /** Whether its own words for the link say less than a sign does. */
  readonly isWeak: boolean
}

type Stream =
  | { readonly kind: 'own'; readonly local: MediaStream }
  | { readonly kind: 'peer' | 'screen'; readonly peer: MediaPeer }

export interface Scene {
  readonly screens: readonly Tile[]
  readonly people: readonly Tile[]
  /** Over the one person's picture: this user's own, or their letter while the camera is off. */
  readonly floating: Tile | undefined
}

export function sceneOf(call: Call, media: MediaView, userId: string | undefined): Scene {
  const { participants, state } = call
  const { peers, isLinkLost } = media
  const others = participants.filter(one => one.userId !== userId).toSorted(byArrival)
  // While it rings the stage has one's own picture, or the first person who is called.
  const isRinging = state === 'ringing'
  const shown = isRinging ? others.slice(0, 1) : others.filter(one => one.state === 'joined')
  const tiles = [
    ...shown.map(one => personTile(one.userId, one.name, peerOf(peers, one), isLinkLost, isRinging)),
    ...peers
      .filter(one => one.userId === undefined && one.hasStream)
      .map(peer => personTile(peer.id, word('call-unknown-person'), peer, isLinkLost, false)),
  ]
  const screens = peers.filter(({ hasScreen }) => hasScreen).map(peer => screenTile(peer, participants))
  const own = ownTile(media)
  if (isRinging) return { screens, people: own.hasPicture ? [own] : tiles, floating: undefined }
  if (screens.length === 0 && tiles.length === 1) return { screens, people: tiles, floating: own }
  return { screens, people: [...tiles, own], floating: undefined }
}

/** The server's list changes its order; a tile keeps its place. */
function byArrival(one: CallMember, other: CallMember): number {
  const [first, second] = [one.joinedAt ?? one.invitedAt, other.joinedAt ?? other.invitedAt]
  if (first !== second) return first < second ? -1 : 1
  return one.userId < other.userId ? -1 : 1
}

function peerOf(peers: readonly MediaPeer[], { userId }: CallMember): MediaPeer | undefined {
  return peers.find(peer => peer.userId === userId)
}

function personTile(
  key: string,
  name: string,
  peer: MediaPeer | undefined,
  isLinkLost: boolean,
  isRinging: boolean,
): Tile {
  const link = peer?.state ?? 'connecting'
  return {
    key,
    kind: 'person',
    name,
    stream: peer?.hasStream ? { kind: 'peer', peer } : undefined,
    // A device that is gone would leave its last picture standing.
    hasPicture: peer?.hasPicture === true && link !== 'gone',
    isMuted: peer?.isMuted === true,
    isSpeaking: peer?.isSpeaking === true,
    trouble: isLinkLost || isRinging || link === 'connected' ? undefined : word(LINKS[link]),
    isWeak: link === 'weak' || link === 'interrupted',
  }
}

function screenTile(peer: MediaPeer, participants: readonly CallMember[]): Tile {
  const name = participants.find(one => one.userId === peer.userId)?.name ?? word('call-unknown-person')
  return {
    key: `${peer.id} screen`,
    kind: 'screen',
    name: word('call-screen-of', name),
    stream: { kind: 'screen', peer },
    hasPicture: true,
    isMuted: false,
    isSpeaking: false,
    trouble: undefined,
    isWeak: false,
  }
}

function ownTile(media: MediaView): Tile {
  const { local, isCameraOff, hasMicrophone, isMuted, isSpeaking, quality } = media
  const hasTrack = local !== undefined && local.getVideoTracks().length > 0
  return {
    key: 'own',
    kind: 'own',
    name: word('call-you'),
    stream: hasTrack ? { kind: 'own', local } : undefined,
    hasPicture: hasTrack && !isCameraOff,
    isMuted: hasMicrophone && isMuted,
    isSpeaking: isSpeaking && !isMuted,
    trouble: quality === 'poor' ? word('call-link-is-weak') : undefined,
    isWeak: quality === 'poor',
  }
}

const LINKS = {
  connecting: 'call-link-connecting',
  weak: 'call-link-is-weak',
  interrupted: 'call-link-interrupted',
  gone: 'call-link-gone',
  unreachable: 'call-link-unreachable',
  undecryptable: 'call-link-undecryptable',
} as const
