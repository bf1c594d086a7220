/** A calling app, put together from the elements of `@callsign/sdk/ui`. */

import { type Call, Callsign, type Contact, indexedDbStorage } from '@callsign/sdk/app'
import { useCalls, useCallsign } from '@callsign/sdk/react'
import { Media } from '@callsign/sdk/ui'
import { useEffect, useState } from 'react'
import { pins, server } from './pins.ts'

type Choice = ConstructorParameters<typeof Media>[2]

/** Of this page, whatever React mounts twice. */
const me = new Callsign({
  server,
  pins,
  storage: indexedDbStorage(),
  device: { deviceInfo: { platform: 'web', locale: navigator.language } },
  language: document.documentElement.lang,
})
const started = me.resume()
navigator.serviceWorker?.register('/service-worker.js').catch(() => undefined)

export default function App() {
  const { userId, user, connection } = useCallsign(me)
  const calls = useCalls(me)
  const [isStarted, setStarted] = useState(false)
  useEffect(() => void started.finally(() => setStarted(true)), [])
  const ringing = calls.filter(({ isIncoming, state }) => isIncoming && state === 'ringing')
  const current = calls.find(one => !ringing.includes(one))
  return (
    <div id="app" className={current === undefined ? '' : 'in-call'}>
      <header>
        <h1>My app</h1>
        <span id="name">{user?.displayName}</span>
        <span id="connection" role="status">
          {userId === undefined ? '' : connection}
        </span>
      </header>
      <callsign-notices me={me} />
      <callsign-proof me={me} />
      {ringing.map(({ call }) => (
        <callsign-ring key={call.callId} me={me} call={call} />
      ))}
      <main>
        {userId !== undefined ? <Calls call={current?.call} /> : isStarted && <callsign-sign-in me={me} />}
      </main>
    </div>
  )
}

/** The call, the lobby before it, and the home page before that. */
function Calls({ call }: { call: Call | undefined }) {
  const [wanted, setWanted] = useState<{ contacts: readonly Contact[]; video: boolean }>()
  const [choice, setChoice] = useState<Choice>()
  if (call !== undefined)
    return <callsign-call key={call.callId} me={me} call={call} media={mediaOf(call, choice)} />
  if (wanted !== undefined) {
    const start = ({ detail }: CustomEvent) => {
      setChoice(detail.choice)
      void me.call(wanted.contacts, { video: wanted.video })
      setWanted(undefined)
    }
    return <callsign-lobby me={me} onstart={start} oncancel={() => setWanted(undefined)} />
  }
  return (
    <>
      <callsign-contacts me={me} oncall={({ detail }) => setWanted(detail)} />
      <callsign-devices me={me} />
      <callsign-account me={me} />
    </>
  )
}

const medias = new WeakMap<Call, Media>()

/** Opened once for a call, and closed as it ends. */
function mediaOf(call: Call, choice: Choice): Media {
  const media = medias.get(call) ?? new Media(me, call, choice)
  if (!medias.has(call)) call.on('ended', () => media.close())
  medias.set(call, media)
  return media
}
