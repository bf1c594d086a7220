/** The server API by groups: `new CallsignServer({ url, key })`. Every method rejects with `CallsignServerError`. */

import { type ServerAccess, ServerLink } from './server-link.ts'
import type { Operations } from './wire.ts'

/** A user, by your own id or by Callsign's. */
export type UserRef = { readonly ext: string } | { readonly id: string }

/** A line of an import: what `users.put` takes. */
export type ImportedUser = Body<'PUT users/{ref}'> & { readonly ref: UserRef }

/** The outcome of a line; the first line is 1. */
export type ImportedLine =
  | { readonly line: number; readonly status: 'created' | 'changed' | 'unchanged'; readonly userId: string }
  | { readonly line: number; readonly status: 'refused'; readonly code: string; readonly detail: string }

type Reply<Name extends keyof Operations> = Promise<Operations[Name]['reply']>
type Body<Name extends keyof Operations> = Operations[Name]['body']
type Query<Name extends keyof Operations> = Omit<Operations[Name]['params'], 'ref' | 'cursor'>

export class CallsignServer {
  readonly users: Users
  readonly contacts: Contacts
  readonly circles: Circles
  readonly calls: Calls
  readonly reports: Reports
  readonly #link: ServerLink

  /** Throws `TypeError` for an address or a key that is none. */
  constructor(options: ServerAccess) {
    const link = new ServerLink(options)
    this.#link = link
    this.users = new Users(link)
    this.contacts = new Contacts(link)
    this.circles = new Circles(link)
    this.calls = new Calls(link)
    this.reports = new Reports(link)
  }

  /** Rows of the audit log, newest first. Needs the scope `audit`. */
  audit(query: Query<'GET audit'> = {}) {
    return pages(cursor => this.#link.ask('GET audit', { params: { ...query, cursor } }))
  }
}

/** Needs the scope `users`, but where a method names another. */
class Users {
  readonly #link: ServerLink

  constructor(link: ServerLink) {
    this.#link = link
  }

  /** Makes the user, where `ref` is an id of your own that no user has, or changes them. */
  put(ref: UserRef, user: Body<'PUT users/{ref}'>): Reply<'PUT users/{ref}'> {
    return this.#link.ask('PUT users/{ref}', { params: { ref: refText(ref) }, body: user })
  }

  get(ref: UserRef): Reply<'GET users/{ref}'> {
    return this.#link.ask('GET users/{ref}', { params: { ref: refText(ref) } })
  }

  /** All users, or those with an address. */
  list(query: Query<'GET users'> = {}) {
    return pages(cursor => this.#link.ask('GET users', { params: { ...query, cursor } }))
  }

  /** Users that changed behind `since`, a `next` of an earlier reply; each once, with their newest change. */
  changes(query: Query<'GET users/changes'> = {}): Reply<'GET users/changes'> {
    return this.#link.ask('GET users/changes', { params: query })
  }

  /** Erases the user in seven days, unless they sign in before; `now` erases them at once. */
  delete(ref: UserRef, { now }: { readonly now?: boolean } = {}): Reply<'DELETE users/{ref}'> {
    return this.#link.ask('DELETE users/{ref}', { params: { ref: refText(ref), now } })
  }

  /**
   * Makes or changes any number of users, up to 10,000 a request. Yields the result of each, in order; one at fault keeps no other
   * back. An import that broke off may be sent again, whole.
   */
  async *import(users: Iterable<ImportedUser> | AsyncIterable<ImportedUser>): AsyncGenerator<ImportedLine> {
    let before = 0
    for await (const portion of portionsOf(users)) {
      const answers = this.#link.lines('POST user-imports', { body: joined(portion) })
      for await (const answer of answers as AsyncGenerator<ImportedLine>)
        yield { ...answer, line: before + answer.line }
      before += portion.length
    }
  }

  sessions(ref: UserRef): Reply<'GET users/{ref}/sessions'> {
    return this.#link.ask('GET users/{ref}/sessions', { params: { ref: refText(ref) } })
  }

  devices(ref: UserRef): Reply<'GET users/{ref}/devices'> {
    return this.#link.ask('GET users/{ref}/devices', { params: { ref: refText(ref) } })
  }

  /** The calls that the user remembers, newest first. */
  calls(ref: UserRef) {
    const params = { ref: refText(ref) }
    return pages(cursor => this.#link.ask('GET users/{ref}/calls', { params: { ...params, cursor } }))
  }

  async signOut(ref: UserRef): Promise<void> {
    await this.#link.ask('POST users/{ref}/sign-out', { params: { ref: refText(ref) } })
  }

  /** A token by which the app signs the user in, once, within a minute (`me.signInByToken`). Needs the scope `sign-in`. */
  signInToken(ref: UserRef): Reply<'POST users/{ref}/sign-in-token'> {
    return this.#link.ask('POST users/{ref}/sign-in-token', { params: { ref: refText(ref) } })
  }

  suspend(ref: UserRef, suspension: Body<'POST users/{ref}/suspend'>): Reply<'POST users/{ref}/suspend'> {
    return this.#link.ask('POST users/{ref}/suspend', { params: { ref: refText(ref) }, body: suspension })
  }

  async unsuspend(ref: UserRef): Promise<void> {
    await this.#link.ask('POST users/{ref}/unsuspend', { params: { ref: refText(ref) } })
  }

  /** All that the server holds of the user: one JSON document, as it is made. Needs the scope `export`. */
  export(ref: UserRef): Promise<ReadableStream<Uint8Array>> {
    return this.#link.stream('GET users/{ref}/export', { ref: refText(ref) })
  }
}

/** Needs the scope `contacts`. */
class Contacts {
  readonly #link: ServerLink

  constructor(link: ServerLink) {
    this.#link = link
  }

  /** Makes two users contacts. */
  put(a: UserRef, b: UserRef): Reply<'PUT contacts'> {
    return this.#link.ask('PUT contacts', { body: { a: refText(a), b: refText(b) } })
  }

  async delete(a: UserRef, b: UserRef): Promise<void> {
    await this.#link.ask('DELETE contacts', { params: { a: refText(a), b: refText(b) } })
  }
}

/** Circles, whose members may call one another. Needs the scope `contacts`. `id` is your own. */
class Circles {
  readonly #link: ServerLink

  constructor(link: ServerLink) {
    this.#link = link
  }

  async addMember(id: string, ref: UserRef): Promise<void> {
    await this.#link.ask('PUT circles/{circleId}/members/{ref}', {
      params: { circleId: id, ref: refText(ref) },
    })
  }

  async removeMember(id: string, ref: UserRef): Promise<void> {
    const params = { circleId: id, ref: refText(ref) }
    await this.#link.ask('DELETE circles/{circleId}/members/{ref}', { params })
  }

  members(id: string) {
    const params = { circleId: id }
    return pages(cursor =>
      this.#link.ask('GET circles/{circleId}/members', { params: { ...params, cursor } }),
    )
  }

  async delete(id: string): Promise<void> {
    await this.#link.ask('DELETE circles/{circleId}', { params: { circleId: id } })
  }
}

/** Needs the scope `calls`. */
class Calls {
  readonly #link: ServerLink

  constructor(link: ServerLink) {
    this.#link = link
  }

  list(query: Query<'GET calls'> = {}) {
    return pages(cursor => this.#link.ask('GET calls', { params: { ...query, cursor } }))
  }

  get(callId: string): Reply<'GET calls/{callId}'> {
    return this.#link.ask('GET calls/{callId}', { params: { callId } })
  }

  async end(callId: string): Promise<void> {
    await this.#link.ask('POST calls/{callId}/end', { params: { callId } })
  }

  /** Takes a user out of a call, which goes on without them. */
  async remove(callId: string, ref: UserRef): Promise<void> {
    await this.#link.ask('POST calls/{callId}/remove', { params: { callId }, body: { ref: refText(ref) } })
  }
}

/** Needs the scope `reports`. */
class Reports {
  readonly #link: ServerLink

  constructor(link: ServerLink) {
    this.#link = link
  }

  list(query: Query<'GET reports'> = {}) {
    return pages(cursor => this.#link.ask('GET reports', { params: { ...query, cursor } }))
  }

  get(reportId: string): Reply<'GET reports/{reportId}'> {
    return this.#link.ask('GET reports/{reportId}', { params: { reportId } })
  }

  change(reportId: string, change: Body<'PATCH reports/{reportId}'>): Reply<'PATCH reports/{reportId}'> {
    return this.#link.ask('PATCH reports/{reportId}', { params: { reportId }, body: change })
  }
}

/** Items of all pages, each fetched when the one before is used up. */
async function* pages<Item>(
  read: (
    cursor: string | undefined,
  ) => Promise<{ readonly items: readonly Item[]; readonly nextCursor?: string }>,
): AsyncGenerator<Item, void, undefined> {
  let cursor: string | undefined
  do {
    const page = await read(cursor)
    yield* page.items
    cursor = page.nextCursor
  } while (cursor !== undefined)
}

/** Lines of an import, as many as one request takes. */
async function* portionsOf(
  users: Iterable<ImportedUser> | AsyncIterable<ImportedUser>,
): AsyncGenerator<Uint8Array[]> {
  const encoder = new TextEncoder()
  let portion: Uint8Array[] = []
  let bytes = 0
  for await (const user of users) {
    const line = encoder.encode(`${JSON.stringify({ ...user, ref: refText(user.ref) })}\n`)
    if (portion.length === LINES_MAX || bytes + line.length > IMPORT_BYTES_MAX) {
      yield portion
      portion = []
      bytes = 0
    }
    portion.push(line)
    bytes += line.length
  }
  if (portion.length > 0) yield portion
}

function joined(lines: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(lines.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const line of lines) {
    whole.set(line, at)
    at += line.length
  }
  return whole
}

/** Throws `TypeError` for none: an id that is `undefined` would be a user of that name. */
function refText(ref: UserRef): string {
  const [kind, id] = 'ext' in ref ? ['ext', ref.ext] : ['id', ref.id]
  if (typeof id !== 'string') throw new TypeError('a user is { ext: "..." } or { id: "..." }')
  return `${kind}:${id}`
}

const LINES_MAX = 10_000
const IMPORT_BYTES_MAX = 8 * 1024 * 1024
