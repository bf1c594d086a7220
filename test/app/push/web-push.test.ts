/** The subscription of a page: asked for, renewed, taken back; and what the page does with what its worker shows. */

import t, { type Test } from 'tap'
import type { Callsign } from '../../../src/app/callsign.ts'
import { CallsignError } from '../../../src/app/callsign-error.ts'
import { renewWebPush, subscribeToWebPush, unsubscribeFromWebPush } from '../../../src/app/push/web-push.ts'

const KEY = Buffer.alloc(65, 0xfb)
const OTHER_KEY = Buffer.alloc(65, 4)
const KEYS = { p256dh: 'p', auth: 'a' }

interface Browser {
  readonly permission?: 'granted' | 'denied' | 'default'
  /** The key of the subscription that there is. */
  readonly subscribedWith?: Buffer
  /** The server's. */
  readonly key?: Buffer | null
  readonly hasPush?: boolean
  readonly isSignedOut?: boolean
}

interface FakeCall {
  readonly callId: string
  state: string
  readonly isIncoming: boolean
  decline(): Promise<void>
}

function open(t: Test, browser: Browser = {}) {
  const { permission = 'granted', key = KEY, hasPush = true } = browser
  const did: unknown[] = []
  const calls: FakeCall[] = []
  let onChanged = () => {}
  let onMessage = (_: { readonly data: unknown }) => {}
  const subscriptionOf = (serverKey: Buffer, endpoint: string) => ({
    options: { applicationServerKey: new Uint8Array(serverKey).buffer },
    toJSON: () => ({ endpoint, expirationTime: null, keys: KEYS }),
    async unsubscribe() {
      did.push(`unsubscribe ${endpoint}`)
      subscription = null
    },
  })
  type Fake = ReturnType<typeof subscriptionOf> | null
  const { subscribedWith } = browser
  let subscription: Fake = subscribedWith ? subscriptionOf(subscribedWith, 'old') : null
  const shown = [
    { tag: '1', data: { type: 'call_invitation' } },
    { tag: '2', data: { type: 'missed_call' } },
  ].map(each => ({ ...each, close: () => did.push(`close ${each.tag}`) }))
  const registration = {
    ...(hasPush && {
      pushManager: {
        getSubscription: async () => subscription,
        async subscribe(options: { userVisibleOnly: boolean; applicationServerKey: Uint8Array }) {
          const { userVisibleOnly, applicationServerKey } = options
          did.push(['subscribe', userVisibleOnly])
          subscription = subscriptionOf(Buffer.from(applicationServerKey), 'new')
          return subscription
        },
      },
    }),
    getNotifications: async ({ tag }: { tag: string }) => shown.filter(each => each.tag === tag),
  } as unknown as Parameters<typeof subscribeToWebPush>[1]
  const me = {
    calls,
    async request(operation: string, body: unknown): Promise<unknown> {
      if (operation === 'GET meta') {
        return key === null ? {} : { webPush: { publicKey: key.toString('base64url') } }
      }
      if (browser.isSignedOut) throw new CallsignError('SIGNED_OUT', 'You are signed out.')
      return did.push([operation, body])
    },
    on: (_: string, listener: () => void) => {
      onChanged = listener
    },
  } as unknown as Callsign
  const world = globalThis as { Notification?: unknown }
  const navigators = Object.getOwnPropertyDescriptor(globalThis, 'navigator')
  world.Notification = {
    permission,
    async requestPermission() {
      did.push('ask')
      return permission
    },
  }
  const serviceWorker = {
    addEventListener: (_: string, listener: typeof onMessage) => {
      onMessage = listener
    },
  }
  Object.defineProperty(globalThis, 'navigator', { value: { serviceWorker }, configurable: true })
  t.teardown(() => {
    delete world.Notification
    if (navigators === undefined) delete (globalThis as { navigator?: unknown }).navigator
    else Object.defineProperty(globalThis, 'navigator', navigators)
  })
  return {
    me,
    registration,
    did,
    calls,
    change: () => onChanged(),
    hear: (data: unknown) => onMessage({ data }),
    isSubscribed: () => subscription !== null,
  }
}

const sent = (endpoint: string) => ['PUT devices/current/push', { webPush: { endpoint, keys: KEYS } }]

t.test('the person is asked first, then the browser subscribes with the server’s key', async t => {
  const { me, registration, did } = open(t)
  t.equal(await subscribeToWebPush(me, registration), 'on')
  t.same(did, ['ask', ['subscribe', true], sent('new')])
})

t.test('who does not allow notifications gets no subscription', async t => {
  for (const permission of ['denied', 'default'] as const) {
    const { me, registration, did } = open(t, { permission })
    t.equal(await subscribeToWebPush(me, registration), 'refused')
    t.same(did, ['ask'])
    const before = open(t, { permission, subscribedWith: KEY })
    t.equal(await renewWebPush(before.me, before.registration), 'refused')
    t.same(before.did, [])
  }
})

t.test('a start sends the subscription anew, without a question, and makes none', async t => {
  const known = open(t, { subscribedWith: KEY })
  t.equal(await renewWebPush(known.me, known.registration), 'on')
  t.same(known.did, [sent('old')])
  const none = open(t)
  t.equal(await renewWebPush(none.me, none.registration), 'off')
  t.same(none.did, [])
})

t.test('a server with another key is subscribed to anew', async t => {
  const { me, registration, did } = open(t, { subscribedWith: OTHER_KEY })
  t.equal(await renewWebPush(me, registration), 'on')
  t.same(did, ['unsubscribe old', ['subscribe', true], sent('new')])
})

t.test('without push in the browser or a key at the server there is nothing to switch on', async t => {
  const old = open(t, { hasPush: false })
  for (const act of [subscribeToWebPush, renewWebPush, unsubscribeFromWebPush])
    t.equal(await act(old.me, old.registration), 'unsupported')
  const keyless = open(t, { key: null })
  t.equal(await subscribeToWebPush(keyless.me, keyless.registration), 'unsupported')
  t.same([...old.did, ...keyless.did], ['ask'])
})

t.test('a subscription is taken back here and at the server, also without a session', async t => {
  const { me, registration, did } = open(t, { subscribedWith: KEY })
  t.equal(await unsubscribeFromWebPush(me, registration), 'off')
  t.same(did, ['unsubscribe old', ['PUT devices/current/push', { webPush: { endpoint: '' } }]])
  const over = open(t, { subscribedWith: KEY, isSignedOut: true })
  t.equal(await unsubscribeFromWebPush(over.me, over.registration), 'off')
  t.notOk(over.isSubscribed())
})

const ring = (callId: string, did: unknown[]): FakeCall => ({
  callId,
  state: 'ringing',
  isIncoming: true,
  decline: async () => void did.push(`decline ${callId}`),
})

t.test('the notification of a ring goes once it rings no more, and a missed call stays', async t => {
  const { me, registration, did, calls, change, hear } = open(t)
  await subscribeToWebPush(me, registration)
  did.length = 0
  calls.push(ring('1', did), ring('2', did))
  change()
  hear({ kind: 'callsign-shown', callId: '1' })
  await Promise.resolve()
  t.same(did, [], 'it rings')
  calls[0]!.state = 'joined'
  calls.pop()
  change()
  await Promise.resolve()
  t.same(did, ['close 1'])
  // Its push comes late.
  hear({ kind: 'callsign-shown', callId: '1' })
  await Promise.resolve()
  t.same(did, ['close 1', 'close 1'])
})

t.test('the worker’s button declines the call that rings, and nothing else', async t => {
  const { me, registration, did, calls, hear } = open(t)
  await subscribeToWebPush(me, registration)
  did.length = 0
  calls.push(ring('1', did), { ...ring('2', did), isIncoming: false }, { ...ring('3', did), state: 'joined' })
  for (const data of [null, 'text', {}, { kind: 'other', callId: '1' }]) hear(data)
  for (const callId of ['1', '2', '3', '4']) hear({ kind: 'callsign-decline', callId })
  t.same(did, ['decline 1'])
})
