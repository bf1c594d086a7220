/** Frames that a gateway recorded do not open with all that a person ever got who was not in the call then. */

import t, { type Test } from 'tap'
import type { Call } from '../../../src/app/app.ts'
import type { Bytes } from '../../../src/app/devices/device-keys.ts'
import { FrameCryptor } from '../../../src/app/media/frame-cryptor.ts'
import { parseFrame } from '../../../src/app/media/media-frame.ts'
import { callOf, DeceivedHouse, type DeceivedPerson, failure, forge } from '../../support/lying-server.ts'
import { startServer } from '../../support/server.ts'
import { until } from '../../support/whole-apps.ts'

type Three = [DeceivedPerson, DeceivedPerson, DeceivedPerson]
type Calls = [Call, Call, Call]

// The clock of this process is moved, and the server's is not.
const house = await DeceivedHouse.open(t, 3, startServer)
const clock = movedClock(t)

/** A clock that apps of this process go by, once they look at it. */
function movedClock(t: Test) {
  const { now } = performance
  let aheadMs = 0
  performance.now = () => now.call(performance) + aheadMs
  t.teardown(() => {
    performance.now = now
  })
  return {
    pass(ms: number): void {
      aheadMs += ms
      for (const { lies } of house.people) lies.wake()
    },
  }
}

const FRAME = Uint8Array.from(Buffer.from('78'.padEnd(80, '5a'), 'hex'))

/** A frame as the member's app sends it now; undefined where it sends none. */
function sendFrame({ callId, keys, sendingKey }: Call): Promise<Bytes | undefined> {
  const cryptor = new FrameCryptor(callId)
  for (const { epoch, key } of keys) cryptor.setKey(epoch, key as Bytes)
  cryptor.useKey(sendingKey?.epoch)
  return cryptor.seal('opus', FRAME)
}

/** All keys that a person ever gets of a call, and keeps. */
class Keyring {
  readonly #callId: string
  readonly #keys: Bytes[] = []

  constructor(call: Call) {
    this.#callId = call.callId
    this.follow(call)
  }

  follow(call: Call): void {
    const keep = () => this.#keys.push(...call.keys.map(({ key }) => key.slice()))
    keep()
    call.on('key', keep)
  }

  /** Whether any of them opens the frame, whatever epoch it was of. */
  async opens(frame: Bytes | undefined): Promise<boolean> {
    const epoch = Number(parseFrame('opus', frame!)!.kid >> 48n)
    for (const key of this.#keys) {
      const cryptor = new FrameCryptor(this.#callId)
      cryptor.setKey(epoch, key)
      if ((await cryptor.open('opus', frame!)).kind === 'opened') return true
    }
    return false
  }
}

t.test(
  'a person who joins opens nothing of before, and after a leave nothing of the time outside the call',
  async t => {
    const [ann, bob, cat] = house.people as Three
    const [call, bobs] = (await callOf(ann, bob)) as [Call, Call]
    const before = [await sendFrame(call), await sendFrame(bobs)]
    t.ok(await new Keyring(bobs).opens(before[0]), 'else this would prove nothing')

    const rung = cat.me.once('ringing')
    await call.invite([cat.me.userId!])
    const cats = await rung
    await cats.answer()
    const keyring = new Keyring(cats)
    await until(bobs, ({ fingerprint }) => fingerprint === cats.fingerprint)
    clock.pass(6_000)
    await until(call, ({ sendingKey }) => sendingKey?.epoch === 2)
    const within = await sendFrame(call)
    t.ok(await keyring.opens(within))

    const parted = [call.once('key'), bobs.once('key')]
    await cats.leave()
    await until(call, ({ participants }) => participants.some(({ state }) => state === 'left'))
    clock.pass(6_000)
    await Promise.all(parted)
    const without = [await sendFrame(call), await sendFrame(bobs)]

    const back = await cat.me.join(call.callId)
    keyring.follow(back)
    await until(back, ({ state }) => state === 'active')
    t.ok(back.keys[0]!.epoch > 3, 'with a key of another epoch')
    for (const frame of [...before, ...without]) t.notOk(await keyring.opens(frame))
  },
)

t.test(
  'a removed member opens nothing after the bound, whatever the server withholds and repeats',
  async t => {
    const [ann, bob, cat] = house.people as Three
    const [call, bobs, cats] = (await callOf(ann, bob, cat)) as Calls
    const keyring = new Keyring(bobs)
    for (const type of ['key_update', 'participant_accept_rejoin'] as const) cat.lies.message(type, () => [])
    const invitation = await cat.lies.heard('call_invitation')
    const told = call.once('sending')
    const ended = bobs.once('ended')
    await call.remove(bob.me.userId!)
    await Promise.all([told, ended])
    t.notOk(await keyring.opens(await sendFrame(call)), 'the host sends with the new key at once')
    t.ok(await keyring.opens(await sendFrame(cats)), 'who does not hear of it goes on')

    t.comment('what the server has is repeated')
    const { encryptedAESKey, callId } = invitation
    const { fromUserId, fromDeviceId, version, sentAt } = await cat.lies.heard('key_update')
    const repeated = {
      v: 1,
      eventId: '',
      sentAt,
      callId,
      version,
      encryptedAESKey,
      fromUserId,
      fromDeviceId,
    } as const
    const refused = failure(cats, 'KEY_MEMBERS_REFUSED')
    for (const epoch of [1, 2, 3])
      cat.lies.tell({ ...repeated, type: 'key_update', epoch, reason: 'rotation' })
    cat.lies.tell(invitation)
    await refused

    // The host makes a key by time, which is withheld as well.
    const rotated = call.once('key')
    clock.pass(601_000)
    t.match(await rotated, { epoch: 3 })
    clock.pass(60_000)
    await until(cats, ({ sendingKey }) => sendingKey === undefined)
    t.equal(await sendFrame(cats), undefined, 'nobody sends with an old one for ever')
    t.match(cats.state, /^(rejoining|keyless)$/)
    t.notOk(await keyring.opens(await sendFrame(call)))

    cat.lies.beHonest()
    await call.renewKey()
    // It may hear of the key by time first.
    await until(cats, ({ state, fingerprint }) => state === 'active' && fingerprint === call.fingerprint)
    for (const one of [call, cats]) t.notOk(await keyring.opens(await sendFrame(one)))
  },
)

t.test(
  'a member who was away sends with the new key, and opens the old one no longer than for 5 s',
  async t => {
    const [ann, bob, cat] = house.people as Three
    const [call, bobs, cats] = (await callOf(ann, bob, cat)) as Calls
    const keyring = new Keyring(bobs)
    const old = await sendFrame(bobs)
    const taken = cats.once('sending')
    await call.remove(bob.me.userId!)
    t.match(await taken, { epoch: 2 })
    t.notOk(await keyring.opens(await sendFrame(cats)), 'at once')
    t.ok(await new Keyring(cats).opens(old), 'frames may be on their way')
    clock.pass(5_100)
    await until(cats, ({ keys }) => keys.length === 1)
    t.notOk(await new Keyring(cats).opens(old))
  },
)

t.test('a key that a member gave in place of the host’s goes when that comes', async t => {
  const [ann, bob, cat] = house.people as Three
  const [call, , before] = (await callOf(ann, bob, cat)) as Calls
  const insider = await house.insider(1)
  const { self } = insider.keyLog
  const [toAnn, toCat] = await Promise.all(
    [ann, cat].map(({ me }) => insider.keyLog.deviceOf(me.userId!, me.deviceId!)),
  )
  const stop = cat.lies.message('participant_accept_rejoin', () => [])
  const again = await house.restart(2)
  const back = await again.me.once('resumed')
  const { nonce } = await bob.lies.heard('participant_request_rejoin')
  const answer = await cat.lies.heard('participant_accept_rejoin', one => one.fromUserId === ann.me.userId)
  const binding = { callId: before.callId, epoch: 1, nonce: Buffer.from(nonce!, 'base64') }
  const { encryptedAESKey } = await forge(insider, toCat!, [self, toAnn!, toCat!], binding)
  stop()
  cat.lies.tell({ ...answer, encryptedAESKey, fromUserId: self.userId, fromDeviceId: self.deviceId })
  // It is opened and weighed before the time is up.
  await again.me.once('participant_accept_rejoin')
  t.not(back.state, 'active', 'the host has a moment')
  const given = back.once('key')
  clock.pass(5_100)
  t.match(await given, { fromUserId: bob.me.userId! })
  t.not(back.fingerprint, call.fingerprint)

  const replaced = back.once('key')
  cat.lies.tell(answer)
  t.match(await replaced, { fromUserId: ann.me.userId!, fingerprint: call.fingerprint! })
  t.equal(back.keys.length, 1)
})
