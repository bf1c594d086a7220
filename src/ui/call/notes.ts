/** Lines over the stage: what is wrong with picture, sound or connection now. */

import type { ConnectionState } from '../../app/app.ts'
import type { MediaView } from '../media/media-view.ts'
import { word } from '../words.ts'

export interface Note {
  readonly isBad: boolean
  readonly text: string
}

export function notesOf(media: MediaView, connection: ConnectionState | undefined): readonly Note[] {
  const { problem, peers, isSoundOn, isLinkLost, quality, isSpeakingMuted, screen } = media
  const notes: Note[] = []
  if (connection !== 'connected') notes.push({ isBad: true, text: word('call-server-lost') })
  else if (isLinkLost) notes.push({ isBad: true, text: word('call-link-lost') })
  else if (quality === 'poor') notes.push({ isBad: false, text: word('call-link-weak') })
  if (problem !== undefined) notes.push({ isBad: false, text: problem })
  if (peers.length > 0 && !isSoundOn) notes.push({ isBad: false, text: word('call-sound-off') })
  if (isSpeakingMuted) notes.push({ isBad: false, text: word('call-speaking-muted') })
  if (screen !== undefined) notes.push({ isBad: false, text: word('call-showing-screen') })
  return notes
}
