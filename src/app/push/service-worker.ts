/**
 * `@callsign/sdk/app/service-worker`: for the service worker of a web app. It shows pushes while no page is open, an
 * incoming call above all, and a click opens the page. It has no session and asks the server nothing.
 */

export interface ShownPushes {
  /** The page that a click opens, with `?call=` and the call's id behind it; by default the worker's scope. */
  readonly url?: string
  /** A picture beside the words. */
  readonly icon?: string
}

/** To an open page, where `@callsign/sdk/app/web-push` listens: a ring is shown, or its button to decline was clicked. */
export interface WorkerMessage {
  readonly kind: 'callsign-shown' | 'callsign-decline'
  readonly callId: string
}

/** The part of a push that is kept with its notification. */
interface Kept {
  readonly type: string
  readonly callId?: string
  readonly eventId: string
  readonly sentAt: number
}

/** The members of docs/build/push.md, those of them that are used here. */
interface Pushed extends Kept {
  readonly title: string
  readonly body: string
  readonly tag: string
  readonly reason?: string
  readonly answer?: string
  readonly decline?: string
}

/** Call it while the worker starts: browsers look then which events it handles. */
export function handleCallPushes({ url, icon }: ShownPushes = {}): void {
  const worker = self as unknown as Worker
  const page = () => new URL(url ?? '', worker.registration.scope)
  worker.addEventListener('push', event => {
    const pushed = readPush(event.data)
    if (pushed !== undefined) event.waitUntil(show(worker, page(), pushed, icon))
  })
  worker.addEventListener('notificationclick', event => {
    const { data: kept } = event.notification
    if (!isKept(kept)) return
    event.notification.close()
    event.waitUntil(event.action === 'decline' ? decline(worker, page(), kept) : open(worker, page(), kept))
  })
}

function readPush(data: PushEvent['data']): Pushed | undefined {
  try {
    const value: unknown = data?.json()
    const { title, body, tag } = Object(value) as Record<string, unknown>
    const areWords = [title, body, tag].every(each => typeof each === 'string')
    return areWords && isKept(value) ? (value as Pushed) : undefined
  } catch {
    // Another's, for another listener.
    return undefined
  }
}

function isKept(value: unknown): value is Kept {
  const { type, callId = '', eventId, sentAt } = Object(value) as Record<string, unknown>
  const areTexts = [type, callId, eventId].every(each => typeof each === 'string')
  return areTexts && typeof sentAt === 'number'
}

/**
 * Browsers demand that each push shows something. An earlier push that comes late shows the later one again, which took its
 * place by the same tag.
 */
async function show(worker: Worker, page: URL, pushed: Pushed, icon: string | undefined): Promise<void> {
  const { registration } = worker
  const { title, body, tag, type, callId, eventId, sentAt } = pushed
  const [shown] = await registration.getNotifications({ tag })
  const kept = isKept(shown?.data) ? shown.data : undefined
  const plain = { tag, ...(icon === undefined ? {} : { icon }) }
  if (shown !== undefined && kept !== undefined && kept.sentAt > sentAt) {
    const { title, body, data } = shown
    return registration.showNotification(title, { ...plain, body, data, silent: true })
  }
  const data: Kept = { type, eventId, sentAt, ...(callId === undefined ? {} : { callId }) }
  const pages = await pagesOf(worker, page)
  const isRing = type === 'call_invitation'
  await registration.showNotification(title, {
    ...plain,
    body,
    data,
    // A page that is looked at rings by itself.
    silent: type === 'call_cancel' || (isRing && pages.some(isSeen)),
    renotify: isRing && kept?.eventId !== eventId,
    requireInteraction: isRing,
    ...(isRing ? { actions: buttonsOf(pushed, pages.length > 0) } : {}),
  })
  if (isRing) tell(pages, 'callsign-shown', callId)
  if (type !== 'call_cancel' || pushed.reason === 'cancelled') return
  await new Promise(resolve => setTimeout(resolve, QUIET_LINE_MS))
  for (const each of await registration.getNotifications({ tag })) {
    if (isKept(each.data) && each.data.eventId === eventId) each.close()
  }
}

/** Only a page has the session that a call is declined by. */
function buttonsOf({ answer, decline }: Pushed, hasPage: boolean): readonly Button[] {
  const buttons = [
    { action: 'answer', title: answer },
    { action: 'decline', title: hasPage ? decline : undefined },
  ]
  return buttons.filter((each): each is Button => each.title !== undefined)
}

async function open(worker: Worker, page: URL, { callId }: Kept): Promise<void> {
  const [first] = await pagesOf(worker, page)
  // It knows of the call by itself.
  if (first !== undefined) return void (await first.focus())
  if (callId !== undefined) page.searchParams.set('call', callId)
  await worker.clients.openWindow(page.href)
}

async function decline(worker: Worker, page: URL, kept: Kept): Promise<void> {
  const { callId } = kept
  const pages = await pagesOf(worker, page)
  if (callId === undefined || pages.length === 0) return open(worker, page, kept)
  tell(pages, 'callsign-decline', callId)
}

function tell(pages: readonly Page[], kind: WorkerMessage['kind'], callId = ''): void {
  for (const each of pages) each.postMessage({ kind, callId })
}

/** The app's open pages, the one that is looked at first. */
async function pagesOf({ clients }: Worker, { origin, pathname }: URL): Promise<readonly Page[]> {
  const all = await clients.matchAll({ type: 'window', includeUncontrolled: true })
  const own = all.filter(({ url }) => new URL(url).origin === origin && new URL(url).pathname === pathname)
  return own.toSorted((one, other) => Number(isSeen(other)) - Number(isSeen(one)))
}

function isSeen({ visibilityState }: Page): boolean {
  return visibilityState === 'visible'
}

/** The parts of a service worker's world that are used: its types and those of pages exclude each other. */
interface Worker {
  readonly registration: {
    readonly scope: string
    getNotifications(filter: { readonly tag: string }): Promise<readonly Shown[]>
    showNotification(title: string, options: object): Promise<void>
  }
  readonly clients: {
    matchAll(options: object): Promise<readonly Page[]>
    openWindow(url: string): Promise<unknown>
  }
  addEventListener(type: 'push', listener: (event: PushEvent) => void): void
  addEventListener(type: 'notificationclick', listener: (event: ClickEvent) => void): void
}

interface PushEvent {
  readonly data: { json(): unknown } | null
  waitUntil(work: Promise<unknown>): void
}

interface ClickEvent {
  readonly action: string
  readonly notification: Shown
  waitUntil(work: Promise<unknown>): void
}

interface Shown {
  readonly title: string
  readonly body: string
  readonly data: unknown
  close(): void
}

interface Page {
  readonly url: string
  readonly visibilityState: string
  focus(): Promise<unknown>
  postMessage(message: WorkerMessage): void
}

interface Button {
  readonly action: string
  readonly title: string
}

/** Time to read it for a person who has heard the ring. */
const QUIET_LINE_MS = 10_000
