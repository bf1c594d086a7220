/** Sentences that a screen reader says in a call: people who come and go, and microphones. */

import type { Call } from '../../app/app.ts'
import type { MediaView } from '../media/media-view.ts'
import { word } from '../words.ts'

export class CallNews {
  #callId: string | undefined
  #present: ReadonlyMap<string, string> = new Map()
  #muted: ReadonlyMap<string, boolean> = new Map()

  /** News since the call was looked at last. The first look has none. */
  of(call: Call, media: MediaView, userId: string | undefined): readonly string[] {
    const joined = call.participants.filter(one => one.state === 'joined' && one.userId !== userId)
    const present = new Map(joined.map(one => [one.userId, one.name]))
    const muted = mutedOf(media)
    const isFirst = call.callId !== this.#callId
    const news = isFirst ? [] : [...this.#comings(present), ...this.#mutings(muted, present)]
    this.#callId = call.callId
    this.#present = present
    this.#muted = muted
    return news
  }

  #comings(present: ReadonlyMap<string, string>): readonly string[] {
    const before = this.#present
    return [
      ...[...present].filter(([id]) => !before.has(id)).map(([, name]) => word('call-has-joined', name)),
      ...[...before].filter(([id]) => !present.has(id)).map(([, name]) => word('call-has-left', name)),
    ]
  }

  #mutings(muted: ReadonlyMap<string, boolean>, names: ReadonlyMap<string, string>): readonly string[] {
    return [...muted].flatMap(([id, isMuted]) => {
      const before = this.#muted.get(id)
      const name = id === OWN ? word('call-you') : names.get(id)
      if (before === undefined || before === isMuted || name === undefined) return []
      return word(isMuted ? 'call-is-muted' : 'call-is-unmuted', name)
    })
  }
}

function mutedOf({ peers, isMuted, hasMicrophone }: MediaView): ReadonlyMap<string, boolean> {
  const known = peers.flatMap(({ userId, isMuted }) =>
    userId === undefined ? [] : [[userId, isMuted] as const],
  )
  return new Map(hasMicrophone ? [...known, [OWN, isMuted] as const] : known)
}

const OWN = 'own'
