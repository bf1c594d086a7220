/** LiveKit in the bodies of call records and events. */

import t from 'tap'
import type { ParticipantView } from '../../src/domain/calls/call-notice.ts'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import { CurrentMedia } from '../../src/media/current-media.ts'
import { LiveKitTokens } from '../../src/media/livekit-tokens.ts'
import { mediaBody, participantBody } from '../../src/schema/call.ts'
import { EVENTS } from '../../src/schema/event.ts'
import { admitOf } from '../../src/server/reads.ts'
import { keyed } from '../support/livekit-settings.ts'

const livekit = keyed()
/** As two processes make them. */
const [admit, other] = [livekit, { ...livekit }].map(
  settings => admitOf(new CurrentMedia({ kind: 'livekit', livekit: settings }))!,
) as [NonNullable<ReturnType<typeof admitOf>>, NonNullable<ReturnType<typeof admitOf>>]
const callId = 56n as CallId
const device = { userId: 12n as UserId, deviceId: 34n as DeviceId }
const entry = { callId, roomId: 7_001, gateway: 'livekit', device }
const joined: ParticipantView = {
  ...device,
  displayName: 'Ann',
  state: 'joined',
  isHost: true,
  invitedBy: device.userId,
  invitedAtMs: 0,
  joinedAtMs: 0,
  leftAtMs: undefined,
  publicKeyHash: 'hash',
  mediaName: '12:Ann',
  feedIds: undefined,
}

t.test(
  'a joined device gets a token, the same from each process; other devices get the key size alone',
  async t => {
    const { token, ...media } = mediaBody({ isReady: true, entry }, admit)
    t.same(media, { kind: 'livekit', state: 'ready', keySize: 256, url: livekit.url })
    t.equal(mediaBody({ isReady: true, entry }, other).token, token)
    const { sub, video } = JSON.parse(Buffer.from(String(token).split('.')[1]!, 'base64url').toString())
    t.equal(video.room, '7001')
    t.equal(participantBody(joined, callId, other).identity, sub)
    for (const isReady of [true, false]) {
      const state = isReady ? 'ready' : 'pending'
      t.same(mediaBody({ isReady, entry: undefined }, admit), { kind: 'livekit', state, keySize: 256 })
    }
    const allowing = admitOf(new CurrentMedia({ kind: 'livekit', livekit: { ...livekit, keySize: 128 } }))
    t.equal(mediaBody({ isReady: false, entry: undefined }, allowing).keySize, 128)
  },
)

t.test('joined participants have an identity, in events too, and no other participant has', async t => {
  const identity = new LiveKitTokens(livekit).identityOf(entry)
  const identityOf = (changes: Partial<ParticipantView>) =>
    participantBody({ ...joined, ...changes }, callId, admit).identity
  t.equal(identityOf({}), identity)
  for (const state of ['invited', 'ringing', 'left', 'lost', 'declined', 'removed'] as const)
    t.equal(identityOf({ state }), undefined, state)
  t.equal(identityOf({ deviceId: undefined }), undefined)
  const event = { kind: 'participant_joined', callId, version: 4, participant: joined } as const
  const told = (by: typeof admit | undefined) =>
    EVENTS.participant_joined.body({ ...event, eventId: 'a', sentAtMs: 0 }, { admit: by })
  t.match(told(admit), { participant: { identity } })
  t.equal(participantBody(joined, callId, undefined).identity, undefined)
  t.notMatch(told(undefined), { participant: { identity: String } })
})
