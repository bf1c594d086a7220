/** How a service worker shows pushes and handles clicks, in a fake browser. */

import t, { type Test } from 'tap'
import { handleCallPushes, type ShownPushes } from '../../../src/app/push/service-worker.ts'

const SCOPE = 'https://app.example/'
const RING = {
  type: 'call_invitation',
  callId: '8000000001',
  eventId: 'a-ring',
  sentAt: 1_000,
  title: 'Callsign',
  body: 'Bob is calling',
  tag: '8000000001',
  answer: 'Answer',
  decline: 'Decline',
}
const CANCEL = {
  ...RING,
  type: 'call_cancel',
  eventId: 'its-end',
  sentAt: 2_000,
  body: 'Missed call from Bob',
}

interface FakeNotification {
  readonly title: string
  readonly tag: string
  readonly [name: string]: unknown
}

interface FakePage {
  readonly url: string
  readonly visibilityState: 'visible' | 'hidden'
}

/** A worker that listens, the pages beside it, and all that it did. */
function open(t: Test, pages: readonly FakePage[] = [], shownPushes: ShownPushes = {}) {
  const listeners = new Map<string, (event: object) => void>()
  let shown: FakeNotification[] = []
  const did: string[] = []
  const timers: { readonly ms: number; readonly run: () => void }[] = []
  const clients = pages.map(page => ({
    ...page,
    focus: async () => void did.push(`focus ${page.url}`),
    postMessage: (message: object) => void did.push(`${page.url} hears ${JSON.stringify(message)}`),
  }))
  const worker = {
    addEventListener: (type: string, listener: (event: object) => void) => listeners.set(type, listener),
    registration: {
      scope: SCOPE,
      getNotifications: async ({ tag }: { tag: string }) => shown.filter(each => each.tag === tag),
      async showNotification(title: string, options: { readonly tag: string }) {
        const close = () => {
          shown = shown.filter(each => each !== notification)
        }
        const notification = { title, ...options, close }
        shown = [...shown.filter(({ tag }) => tag !== options.tag), notification]
      },
    },
    clients: {
      matchAll: async () => clients,
      openWindow: async (url: string) => void did.push(`open ${url}`),
    },
  }
  const world = globalThis as { self?: unknown; setTimeout: unknown }
  const { self, setTimeout } = world
  world.self = worker
  world.setTimeout = (run: () => void, ms: number) => void timers.push({ run, ms })
  t.teardown(() => Object.assign(world, { self, setTimeout }))
  handleCallPushes(shownPushes)
  const fire = async (type: string, members: object) => {
    const works: Promise<unknown>[] = []
    listeners.get(type)?.({ ...members, waitUntil: (work: Promise<unknown>) => void works.push(work) })
    return works
  }
  return {
    did,
    timers,
    shown: () => shown.map(({ close: _, data: __, ...others }) => others),
    push: async (payload: unknown) => Promise.all(await fire('push', { data: { json: () => payload } })),
    fire,
    async click(action = '') {
      await Promise.all(await fire('notificationclick', { notification: shown[0], action }))
    },
  }
}

const CLOSED: readonly FakePage[] = []
const HIDDEN: readonly FakePage[] = [{ url: SCOPE, visibilityState: 'hidden' }]
const SEEN: readonly FakePage[] = [{ url: `${SCOPE}?call=1#x`, visibilityState: 'visible' }]

t.test(
  'a ring stays until it is answered, and rings anew in place of an earlier call of the person',
  async t => {
    const { push, shown } = open(t, CLOSED, { icon: '/icon.png' })
    await push(RING)
    t.same(shown(), [
      {
        title: 'Callsign',
        body: 'Bob is calling',
        tag: '8000000001',
        icon: '/icon.png',
        silent: false,
        renotify: true,
        requireInteraction: true,
        actions: [{ action: 'answer', title: 'Answer' }],
      },
    ])
    await push(RING)
    t.match(shown(), [{ renotify: false }], 'the same push again makes no sound')
  },
)

t.test('beside a page that is looked at the worker is silent, and any page can decline', async t => {
  const seen = open(t, SEEN)
  await seen.push(RING)
  t.match(seen.shown(), [{ silent: true, actions: [{ action: 'answer' }, { action: 'decline' }] }])
  t.same(seen.did, [`${SEEN[0]!.url} hears {"kind":"callsign-shown","callId":"8000000001"}`])
  const hidden = open(t, HIDDEN)
  await hidden.push(RING)
  t.match(hidden.shown(), [{ silent: false }])
})

t.test('a call that was given up takes the place of its ring', async t => {
  const { push, shown, timers } = open(t)
  await push(RING)
  await push({ ...CANCEL, reason: 'cancelled' })
  t.match(shown(), [{ body: 'Missed call from Bob', silent: true, requireInteraction: false }])
  t.same(timers, [])
  await push({ ...CANCEL, type: 'missed_call', eventId: 'missed', sentAt: 2_001 })
  t.match(shown(), [{ body: 'Missed call from Bob', silent: false, requireInteraction: false }])
})

t.test('that it was answered elsewhere is a quiet line, which goes after ten seconds', async t => {
  const { fire, push, shown, timers } = open(t)
  await push(RING)
  const payload = { ...CANCEL, reason: 'answered_elsewhere', body: 'Answered on another device' }
  const works = await fire('push', { data: { json: () => payload } })
  while (timers.length === 0) await Promise.resolve()
  t.match(shown(), [{ body: 'Answered on another device', silent: true }])
  t.equal(timers[0]?.ms, 10_000)
  timers[0]?.run()
  await Promise.all(works)
  t.same(shown(), [])
})

t.test('the quiet line of one call does not take a later one with it', async t => {
  const { fire, push, shown, timers } = open(t)
  const works = await fire('push', { data: { json: () => ({ ...CANCEL, reason: 'ended' }) } })
  while (timers.length === 0) await Promise.resolve()
  await push({ ...RING, eventId: 'again', sentAt: 3_000 })
  timers[0]?.run()
  await Promise.all(works)
  t.match(shown(), [{ body: 'Bob is calling' }])
})

t.test('a ring that comes after its end rings no more', async t => {
  const { push, shown } = open(t)
  await push({ ...CANCEL, reason: 'cancelled' })
  await push(RING)
  t.match(shown(), [{ body: 'Missed call from Bob', silent: true }])
  t.equal(shown()[0]?.requireInteraction, undefined)
})

t.test('a click goes to the open page, or opens one with the call', async t => {
  const closed = open(t, CLOSED, { url: '/calls' })
  await closed.push(RING)
  await closed.click()
  t.same([closed.did, closed.shown()], [['open https://app.example/calls?call=8000000001'], []])
  const both = open(t, [{ url: 'https://app.example/help', visibilityState: 'visible' }, ...HIDDEN, ...SEEN])
  await both.push(RING)
  both.did.length = 0
  await both.click('answer')
  t.same(both.did, [`focus ${SEEN[0]!.url}`], 'the one that is looked at')
  const contact = open(t)
  await contact.push({ ...RING, callId: undefined, type: 'newFriendRequested' })
  t.same([contact.shown()[0]?.actions, contact.shown()[0]?.requireInteraction], [undefined, false])
  await contact.click()
  t.same(contact.did, [`open ${SCOPE}`])
})

t.test('only a page declines; without one the call is opened', async t => {
  const hidden = open(t, HIDDEN)
  await hidden.push(RING)
  hidden.did.length = 0
  await hidden.click('decline')
  t.same(hidden.did, [`${SCOPE} hears {"kind":"callsign-decline","callId":"8000000001"}`])
  const closed = open(t)
  await closed.push(RING)
  await closed.click('decline')
  t.same(closed.did, [`open ${SCOPE}?call=8000000001`])
})

t.test('foreign pushes and notifications are left alone', async t => {
  const { push, fire, shown, did } = open(t)
  const { sentAt: _, ...undated } = RING
  for (const payload of [
    null,
    'text',
    7,
    [],
    {},
    { title: 'x', body: 'y', tag: 'z' },
    undated,
    { ...RING, callId: 7 },
  ])
    await push(payload)
  await fire('push', { data: null })
  const json = () => JSON.parse('{')
  await fire('push', { data: { json } })
  await fire('notificationclick', {
    notification: { data: undefined, close: () => did.push('close') },
    action: '',
  })
  t.same([shown(), did], [[], []])
})
