// One user of `@callsign/sdk/app`, told by lines of JSON what to do. Each line has an `id`, an `act` and its `args`; each answer the
// same `id`, and a `value` or an `error`.
import { createInterface } from 'node:readline'
import { Callsign, memoryStorage } from '@callsign/sdk/app'
import { developmentPins, sentCode } from '@callsign/sdk/app/development'
import { WebSocket } from 'ws'

const server = process.env.CALLSIGN_URL
const pins = await developmentPins(server)
const storage = memoryStorage()
let me
let keyEvents = []
/** Calls by id, those that have ended too. */
let known = new Map()

function open() {
  keyEvents = []
  known = new Map()
  me = new Callsign({ server, pins, storage, webSocket: WebSocket })
  me.on('keys', event => keyEvents.push(event.kind))
  me.on('changed', () => {
    for (const call of me.calls) known.set(call.callId, call)
  })
}

function callOf(callId) {
  const call = known.get(callId)
  if (call === undefined) throw new Error(`no call ${callId}`)
  return call
}

const viewOf = call => ({
  callId: call.callId,
  state: call.state,
  fingerprint: call.fingerprint,
  epoch: call.keys[0]?.epoch,
  isVerified: call.isVerified,
})

const acts = {
  async signIn(address, displayName) {
    open()
    return (await me.signIn(address, () => sentCode(server, address), { displayName })).userId
  },
  async befriendByLink(link) {
    await me.contacts.request({ link })
  },
  shareLink: async () => (await me.contacts.shareLink()).link,
  acceptFirst: async () => {
    const event = await me.once('friend_request')
    await me.contacts.accept(event.userId)
    return event.userId
  },
  accept: userId => me.contacts.accept(userId),
  code: userId => me.contacts.comparisonCode(userId),
  call: async userId => viewOf(await me.call([userId])),
  /** As `call`, without waiting to see its key. */
  start: async userId => (await me.call([userId])).callId,
  async ringing() {
    const call = me.calls.find(one => one.isIncoming && one.state === 'ringing') ?? (await me.once('ringing'))
    return call.callId
  },
  answer: async callId => {
    const call = callOf(callId)
    await call.answer()
    return viewOf(call)
  },
  /** Waits for a state, and for a key of this epoch or later. */
  async until(callId, state, epoch = 0) {
    while (!known.has(callId)) await me.once('changed')
    const call = callOf(callId)
    while (call.state !== state || !(call.keys[0]?.epoch >= epoch)) await call.once('changed')
    return viewOf(call)
  },
  /** Waits until it asks for the key. */
  async asking(callId) {
    while (known.get(callId)?.state !== 'rejoining') await me.once('changed')
  },
  renewKey: callId => callOf(callId).renewKey(),
  /** Waits for its end, and says why it has ended. */
  async ending(callId) {
    const call = callOf(callId)
    while (call.state !== 'ended') await call.once('changed')
    return call.ending
  },
  end: callId => callOf(callId).end(),
  leave: callId => callOf(callId).leave(),
  /** With `close` before: as if the app were killed and started anew. */
  async resume() {
    open()
    await me.resume()
  },
  keyEvents: () => keyEvents,
  close: () => me.close(),
}

for await (const line of createInterface(process.stdin)) {
  const { id, act, args } = JSON.parse(line)
  Promise.resolve()
    .then(() => acts[act](...args))
    .then(
      value => ({ id, value: value ?? null }),
      error => ({ id, error: error.code ?? String(error) }),
    )
    .then(answer => process.stdout.write(`${JSON.stringify(answer)}\n`))
}
process.exit()
