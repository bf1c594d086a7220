/** Sound and picture of a call: a tile for each person, and for oneself. */

import type { Call, Callsign } from '@callsign/sdk/app'
import { joinMedia } from '@callsign/sdk/app/media'

const tiles = document.querySelector('#tiles')!
const link = document.querySelector('#link')!

/** Goes along with the call from when it is active to its end. */
export function showMedia(me: Callsign, call: Call): void {
  let hasBegun = false
  const begin = () => {
    if (hasBegun || call.state !== 'active') return
    hasBegun = true
    // The server has no media gateway, such as Janus: people see who is there, and hear nothing.
    if (call.media?.kind !== 'janus') return
    const media = joinMedia(call, { relay: () => me.relay() })
    const showOwn = () => {
      const tracks = [media.own.get('camera')].filter(track => track !== undefined)
      videoOf('own', 'You').srcObject = new MediaStream(tracks)
      videoOf('own', 'You').muted = true
    }
    media.on('own', showOwn)
    media.on('participant', ({ feed, userId }) => {
      const video = videoOf(feed, nameOf(call, userId))
      media.show(feed, 'microphone', video)
      media.show(feed, 'camera', video)
    })
    media.on('gone', ({ feed }) => tileOf(feed)?.remove())
    media.on('speaking', speaker => {
      for (const tile of tiles.children)
        tile.classList.toggle('speaking', tile.matches(`[data-feed="${speaker?.feed}"]`))
    })
    // Said once: while this device's own link is lost, nothing is wrong with the others'.
    media.on('quality', ({ feed, quality }) => {
      if (feed === 'own')
        link.textContent = quality === 'lost' ? 'Your connection is lost. Connecting again …' : ''
      else tileOf(feed)?.classList.toggle('lost', quality === 'lost')
    })
    media.on('error', ({ code, sentence }) => {
      if (code === 'MEDIA_UNSUPPORTED') link.textContent = sentence
    })
    showOwn()
  }
  call.on('state', begin)
  call.on('ended', () => {
    tiles.replaceChildren()
    link.textContent = ''
  })
  begin()
}

function nameOf({ participants }: Call, userId: string | undefined): string {
  return participants.find(one => one.userId === userId)?.displayName ?? 'Somebody unknown'
}

function tileOf(feed: string): HTMLElement | null {
  return tiles.querySelector(`[data-feed="${CSS.escape(feed)}"]`)
}

/** The name of a feed may come after it. */
function videoOf(feed: string, name: string): HTMLVideoElement {
  const tile = tileOf(feed) ?? document.createElement('figure')
  if (tile.parentElement === null) {
    const video = document.createElement('video')
    video.autoplay = true
    video.playsInline = true
    tile.dataset.feed = feed
    tile.append(video, document.createElement('figcaption'))
    tiles.append(tile)
  }
  tile.querySelector('figcaption')!.textContent = name
  return tile.querySelector('video')!
}
