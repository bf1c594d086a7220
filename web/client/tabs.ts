/**
 * Each tab is a person of its own. Locks of the browser say which tabs are open, and go with them: one for the tab's
 * storage, one for the name that is signed in to it.
 */

/** Whether the browser lets the page keep anything: where cookies are blocked, it throws at the mention of a storage. */
export function mayKeep(): boolean {
  try {
    return sessionStorage !== undefined && localStorage !== undefined
  } catch {
    return false
  }
}

/**
 * Whether no other tab has this tab's storage: a duplicated tab is given a copy of it, and two tabs with the same tokens
 * would take the session from one another.
 */
export async function isOwnTab(): Promise<boolean> {
  const id = sessionStorage.getItem(TAB) ?? (await tabLeft()) ?? crypto.randomUUID()
  sessionStorage.setItem(TAB, id)
  return new Promise(resolve => {
    const holdForever = () => {
      resolve(true)
      return new Promise<never>(() => {})
    }
    // On a reload the page before may still have it for a moment.
    const signal = AbortSignal.timeout(LOCK_WAIT_MS)
    navigator.locks.request(LOCK_PREFIX + id, { signal }, holdForever).catch(() => resolve(false))
  })
}

/** Where this tab keeps its sign-in that waits: it outlives the tab, for days. */
export function waitingName(): string {
  return WAITING_PREFIX + sessionStorage.getItem(TAB)
}

/** Where this tab keeps its person, who wants to be rung when it is closed. */
export function keptName(key: string): string {
  return `${KEPT_PREFIX}${sessionStorage.getItem(TAB)}.${key}`
}

/** A tab that was closed while its sign-in waited, or whose person stays: the next one that is opened goes on as that tab. */
async function tabLeft(): Promise<string | undefined> {
  const { held = [] } = await navigator.locks.query()
  return Object.keys(localStorage)
    .flatMap(key => /^callsign\.(?:waiting|kept)\.([\w-]+)/.exec(key)?.[1] ?? [])
    .find(id => held.every(({ name }) => name !== LOCK_PREFIX + id))
}

/** Tells other tabs that this one has a person of this name, until `releaseName` or the tab's end. */
export function holdName(name: string): void {
  let letGo = () => {}
  const held = new Promise<void>(resolve => {
    letGo = resolve
  })
  const released = navigator.locks.request(NAME_PREFIX + name, { mode: 'shared' }, () => held)
  release = () => {
    letGo()
    return released
  }
}

/** Resolves when other tabs know. */
export async function releaseName(): Promise<void> {
  await release?.()
  release = undefined
}

/** Names that are signed in to open tabs of this browser. */
export async function namesTaken(): Promise<readonly string[]> {
  const { held = [] } = await navigator.locks.query()
  const names = held.flatMap(({ name = '' }) =>
    name.startsWith(NAME_PREFIX) ? [name.slice(NAME_PREFIX.length)] : [],
  )
  return [...new Set(names)]
}

let release: (() => Promise<void>) | undefined
const TAB = 'callsign.tab'
const LOCK_PREFIX = 'callsign-tab-'
const WAITING_PREFIX = 'callsign.waiting.'
const KEPT_PREFIX = 'callsign.kept.'
const NAME_PREFIX = 'callsign-name-'
const LOCK_WAIT_MS = 1_500
