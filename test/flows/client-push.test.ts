/**
 * The development client rings while its page is closed, in headless Chromium, which has no push service and shows no
 * notifications: the subscription is made up, what the server would have sent is handed to the worker by the browser's own
 * tools, and what the worker would show is noted.
 */

import type { Browser, BrowserContext, Page, Worker } from 'playwright-core'
import t from 'tap'
import { openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { befriend, button, endForAll, newTab, openHouse } from '../support/client-page.ts'
import { openServer } from '../support/open-server.ts'

const browser = (await openBrowser(t)) as Browser
const HOST = 'push.invalid'
const P256DH = 'BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU'
/** A push manager that subscribes without a push service, and remembers it as a browser does; the person allows all. */
const PUSH_MANAGER = `
  const encode = octets => btoa(String.fromCharCode(...new Uint8Array(octets)))
  const decode = text => Uint8Array.from(atob(text), one => one.charCodeAt(0)).buffer
  const subscription = () => {
    const key = localStorage.getItem('test.key')
    return key === null ? null : {
      options: { applicationServerKey: decode(key) },
      toJSON: () => ({
        endpoint: 'https://${HOST}/send/bob',
        keys: { p256dh: '${P256DH}', auth: 'A'.repeat(22) },
      }),
      unsubscribe: async () => localStorage.removeItem('test.key'),
    }
  }
  PushManager.prototype.getSubscription = async () => subscription()
  PushManager.prototype.subscribe = async ({ applicationServerKey }) => {
    localStorage.setItem('test.key', encode(applicationServerKey))
    return subscription()
  }
  Notification.requestPermission = async () => 'granted'
  Object.defineProperty(Notification, 'permission', { value: 'granted' })
`

/** In the worker: notifications that are not shown. */
const NOTIFICATIONS = `
  self.shown = []
  ServiceWorkerRegistration.prototype.getNotifications = async ({ tag }) =>
    shown.filter(each => each.tag === tag)
  ServiceWorkerRegistration.prototype.showNotification = async (title, options) => {
    const close = () => void (self.shown = shown.filter(each => each !== notification))
    const notification = { title, ...options, close }
    self.shown = [...shown.filter(({ tag }) => tag !== options.tag), notification]
  }
`

interface Shown {
  readonly title: string
  readonly body: string
  readonly tag: string
  readonly silent: boolean
  readonly requireInteraction: boolean
  readonly actions: readonly { readonly action: string; readonly title: string }[]
}

/** The worker's notifications, once there are any. */
function shownBy(worker: Worker): Promise<readonly Shown[]> {
  return worker.evaluate(`(async () => {
    while (shown.length === 0) await new Promise(resolve => setTimeout(resolve, 20))
    return shown.map(({ close, ...options }) => options)
  })()`)
}

/** The newest push of this kind to a browser that the server has rendered, once there is one. */
function pushOf(page: Page, kind: string): Promise<Readonly<Record<string, unknown>>> {
  return page.evaluate(`(async () => {
    for (;;) {
      const { items } = await (await fetch('/dev/pushes')).json()
      const push = items.find(({ kind, provider }) => kind === '${kind}' && provider === 'webpush')
      if (push !== undefined) return push.payload
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  })()`)
}

/** Hands a push to the worker. Resolves with the worker. */
async function deliver(context: BrowserContext, page: Page, payload: object): Promise<Worker> {
  const [worker = await context.waitForEvent('serviceworker')] = context.serviceWorkers()
  await worker.evaluate(NOTIFICATIONS)
  const devtools = await context.newCDPSession(page)
  const registered = new Promise<string>(resolve =>
    devtools.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      const own = registrations.find(({ scopeURL }) => scopeURL.endsWith('/dev/client'))
      if (own !== undefined) resolve(own.registrationId)
    }),
  )
  await devtools.send('ServiceWorker.enable')
  const { origin } = new URL(page.url())
  const data = JSON.stringify(payload)
  await devtools.send('ServiceWorker.deliverPushMessage', { origin, registrationId: await registered, data })
  return worker
}

/** A click that is made up; what it would open is given back. */
const CLICK = `(async () => {
  const opened = []
  Clients.prototype.openWindow = async url => void opened.push(url)
  const works = []
  const more = { notification: shown[0], action: '', waitUntil: work => works.push(work) }
  dispatchEvent(Object.assign(new Event('notificationclick'), more))
  await Promise.all(works)
  return opened
})()`

t.test(
  'a call rings though the page is closed, and a click leads to it',
  { skip: skipWithoutChromium },
  async t => {
    const environment = { CALLSIGN_WEB_PUSH_HOSTS: HOST }
    const server = await openServer({ dataFolder: t.testdir(), environment })
    const { url, newContext } = await openHouse(t, browser, server)
    const ann = await newTab(await newContext(), url, 'Ann')
    const context = await newContext()
    await context.addInitScript(PUSH_MANAGER)
    const bob = await newTab(context, url, 'Bob')
    await befriend(ann, bob, 'Bob')
    const own = bob.getByRole('switch', { name: 'Ring me when this page is closed' })
    await own.click()
    await bob.getByRole('switch', { checked: true }).waitFor()
    const aside = await context.newPage()
    await aside.goto(`${server.http}/docs`)
    await bob.close()

    await button(ann, 'Video call to Bob').click()
    const payload = await pushOf(ann, 'call_invitation')
    const worker = await deliver(context, aside, payload)
    t.match(await shownBy(worker), [
      {
        title: 'Callsign',
        body: 'Ann is calling',
        tag: payload.callId,
        silent: false,
        requireInteraction: true,
        actions: [{ action: 'answer', title: 'Answer' }],
      },
    ])

    const opened = await worker.evaluate<string[]>(CLICK)
    t.same(opened, [`${url}?call=${payload.callId}`])
    t.same(await worker.evaluate('shown.length'), 0)
    const again = await context.newPage()
    await again.goto(opened[0]!)
    await again.getByRole('switch', { checked: true }).waitFor()
    await button(again, 'Answer').click()
    await endForAll(ann)

    await button(again, 'Sign out').click()
    await button(again, 'Be Bob').waitFor()
    t.equal(await again.evaluate(`localStorage.getItem('test.key')`), null)
    t.same(await again.evaluate(`Object.keys(localStorage).filter(name => name.includes('kept'))`), [])
  },
)
