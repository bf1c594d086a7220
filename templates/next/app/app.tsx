/** A calling app, put together from the elements of `@callsign/sdk/ui`. */

import { type Call, Callsign, indexedDbStorage } from '@callsign/sdk/app'
import { useCalls, useCallsign } from '@callsign/sdk/react'
import { browserName, type CallsignNotices, type CallWish, Media, type MediaChoice } from '@callsign/sdk/ui'
import { type RefObject, useRef, useState } from 'react'
import { pins, server } from './pins.ts'

const storage = indexedDbStorage()
const device = { deviceInfo: { platform: 'web', name: browserName(), locale: navigator.language } }
/** Of this page, whatever React mounts twice. */
const me = new Callsign({ server, pins, storage, device, language: document.documentElement.lang })
/** Shows calls while no page is open. */
const worker = navigator.serviceWorker?.register('/service-worker.js').catch(() => undefined)

export default function App() {
  const { userId, user, connection } = useCallsign(me)
  const calls = useCalls(me)
  const notices = useRef<CallsignNotices>(null)
  const ringing = calls.filter(
    ({ isIncoming, state }) => isIncoming && (state === 'ringing' || state === 'joining'),
  )
  const current = calls.find(one => !ringing.includes(one))
  return (
    <>
      <header>
        <h1>My app</h1>
        <span id="name">{user?.displayName}</span>
        <span id="connection" role="status">
          {userId === undefined ? '' : connection}
        </span>
        {(connection === 'waiting' || connection === 'elsewhere') && (
          <button type="button" onClick={() => me.takeOver()}>
            Use this tab
          </button>
        )}
      </header>
      <div className="over">
        {ringing.map(({ call }) => (
          <callsign-ring key={call.callId} me={me} call={call} />
        ))}
        <callsign-notices ref={notices} me={me} />
      </div>
      <callsign-proof me={me} />
      <callsign-sign-in me={me} storage={storage} />
      <main>{userId !== undefined && <Calls call={current?.call} notices={notices} />}</main>
    </>
  )
}

/** The call, the lobby before it, and the home page before that. */
function Calls({ call, notices }: { call: Call | undefined; notices: RefObject<CallsignNotices | null> }) {
  const { restriction } = useCallsign(me)
  const [wanted, setWanted] = useState<CallWish>()
  const [choice, setChoice] = useState<MediaChoice>()
  if (call !== undefined)
    return <callsign-call key={call.callId} me={me} call={call} media={mediaOf(call, choice)} />
  if (wanted !== undefined) {
    const { contacts, video } = wanted
    const start = async () => void (await me.call(contacts, { video }))
    const onStart = ({ detail }: CustomEvent) => {
      setChoice(detail.choice)
      setWanted(undefined)
      start().catch(error => notices.current?.tell(error, start))
    }
    return <callsign-lobby me={me} video={video} onstart={onStart} oncancel={() => setWanted(undefined)} />
  }
  return (
    <>
      {/* Another device has to approve this one first. */}
      {restriction === undefined && <callsign-contacts me={me} oncall={({ detail }) => setWanted(detail)} />}
      <callsign-devices me={me} />
      <callsign-account me={me} worker={worker} />
    </>
  )
}

const medias = new WeakMap<Call, Media>()

/** Sound and picture of a call, opened once. */
function mediaOf(call: Call, choice: MediaChoice | undefined): Media {
  const media = medias.get(call) ?? new Media(me, call, call.isIncoming ? undefined : choice)
  medias.set(call, media)
  return media
}
