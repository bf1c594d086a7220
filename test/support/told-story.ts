/**
 * One app's story with its log: each step has the request, every exchange, and the result of `@callsign/sdk/client`, with
 * its memory afterwards.
 */
import {
  type Completeness,
  type CompletenessDemand,
  ContactDevices,
  type DeviceEvent,
  type Fetch,
  type KeptCheckpoint,
  type KeyQuestion,
  type KnownUser,
  LogClient,
  type LookupOutcome,
  type NamedUser,
  type OwnKeysReport,
  type PublishedKeys,
  type PublishedPolicy,
  type ReadDeviceLists,
  type Refusal,
  type Unanswered,
  type VerifiedCheckpoint,
  type VerifiedDevices,
} from '../../src/client/client.ts'
import { fromUtf8, toBase64 } from './bytes.ts'
import type { Json } from './verdict-edits.ts'

interface Exchange {
  readonly path: string
  readonly body?: string
  /** Left out where there was no answer: no network, or nothing before the request's time was over. */
  readonly status?: number
  readonly isLate?: true
  /** Base64. */
  readonly answer?: string
}

export interface Step {
  readonly act: string
  readonly given: Json
  readonly exchanges: readonly Exchange[]
  /** With the memory after it. */
  readonly outcome: string
}

/** Options of an app's client, besides the keys. */
export interface ToldOptions {
  readonly mirror?: string
  readonly maxAgeMs?: number
  readonly timeoutMs?: number
  readonly completeness?: CompletenessDemand
  readonly maxIndexAgeMs?: number
}

interface Device {
  readonly userId: string
  readonly deviceId: string
  readonly vrfHash: string
}

interface OwnDevice extends Device {
  readonly publicKeys: string[]
}

export class ToldStory {
  readonly kept = new Map<string, KeptCheckpoint>()
  readonly steps: Step[] = []
  /** Answers the requests of the next step. */
  serve: Fetch = () => Promise.reject(new Error('no network'))
  /** Answers `GET user/device-lists`. */
  serveLists: ReadDeviceLists = () => Promise.reject(new Error('no network'))
  readonly #published: PublishedKeys | PublishedPolicy
  readonly #options: ToldOptions
  readonly #origin: string
  readonly #userId: string
  readonly #known = new Map<string, KnownUser>()
  #nowMs = TOLD_AT_MS
  #exchanges: Exchange[] = []
  #client!: LogClient
  #contacts!: ContactDevices

  /** Remembers this log and this contact. */
  constructor(
    published: PublishedKeys | PublishedPolicy,
    origin: string,
    userId: bigint,
    options: ToldOptions = {},
  ) {
    this.#published = published
    this.#options = options
    this.#origin = origin
    this.#userId = `${userId}`
    this.#start()
  }

  lookUp(device: Device): Promise<string> {
    return this.#step('lookUp', { ...device }, () =>
      settled(this.#client.lookUpAll([device]), all => all.map(lookupText).join('; ')),
    )
  }

  checkOwnKeys(device: OwnDevice): Promise<string> {
    return this.#step('checkOwnKeys', { ...device }, () =>
      settled(this.#client.checkOwnKeys(device), ownKeysText),
    )
  }

  refresh(): Promise<string> {
    return this.#step('refresh', null, () => settled(this.#client.refreshCheckpoint(), headText))
  }

  compareWith(note: string): Promise<string> {
    return this.#step('compareWith', note, () => settled(this.#client.compareWith(note), headText))
  }

  /** Puts notes among those that could not be compared yet. */
  plantPending(pending: string[]): Promise<string> {
    const kept = this.kept.get(this.#origin)
    if (kept !== undefined) this.kept.set(kept.origin, { ...kept, pending })
    return this.#step('plantPending', pending, async () => '')
  }

  wait(hours: number): Promise<string> {
    this.#nowMs += hours * 3_600_000
    return this.#step('wait', hours, async () => '')
  }

  restart(): Promise<string> {
    this.#start()
    return this.#step('restart', null, async () => '')
  }

  checkOwnList(): Promise<string> {
    return this.#step('checkOwnList', this.#userId, () =>
      settled(this.#contacts.checkOwnList(this.#userId), ownKeysText),
    )
  }

  verifyShared(user: NamedUser, shared: { userId: bigint; listHash: string }): Promise<string> {
    const given = { user: user as unknown as Json, listHash: shared.listHash }
    return this.#step('verifyShared', given, () =>
      settled(this.#contacts.verifyShared(user, shared), devicesText),
    )
  }

  accept(listHash: string): Promise<string> {
    return this.#step('accept', listHash, () =>
      settled(
        this.#contacts.accept(this.#userId, listHash),
        question => questionText(question) || 'accepted',
      ),
    )
  }

  /** Events that are shown do not come again. */
  verify(user: NamedUser, isShown: () => boolean = () => false): Promise<string> {
    let act = 'verify'
    return this.#step(
      () => act,
      user as unknown as Json,
      async () => {
        let events: readonly DeviceEvent[] = []
        const outcome = await settled(this.#contacts.verify(user), verdict => {
          if (verdict.kind === 'verified') events = verdict.events
          return devicesText(verdict)
        })
        if (!isShown()) return outcome
        act = 'verifyAndShow'
        await this.#contacts.shown(user.userId, events)
        return outcome
      },
    )
  }

  async #step(act: string | (() => string), given: Json, run: () => Promise<string>): Promise<string> {
    this.#exchanges = []
    const outcome = `${await run()}${this.#memory()}`
    const name = typeof act === 'string' ? act : act()
    this.steps.push({ act: name, given, exchanges: this.#exchanges, outcome })
    return outcome
  }

  #start(): void {
    const store = {
      get: (origin: string) => this.kept.get(origin),
      put: (kept: KeptCheckpoint) => void this.kept.set(kept.origin, kept),
    }
    const fetch = (async (url: string, init: { readonly body?: string }) =>
      this.#exchange(url, init)) as unknown as Fetch
    const nowMs = () => this.#nowMs
    this.#client = new LogClient({
      ...this.#published,
      ...this.#options,
      url: 'https://log.example',
      store,
      fetch,
      nowMs,
    })
    const known = {
      get: (userId: string) => this.#known.get(userId),
      put: (user: KnownUser) => void this.#known.set(user.userId, user),
    }
    this.#contacts = new ContactDevices(this.#client, known, (userId, after) => this.#lists(userId, after))
  }

  async #lists(userId: string, after: number | undefined): Promise<readonly string[]> {
    const path = `user/device-lists?userId=${userId}${after === undefined ? '' : `&after=${after}`}`
    try {
      const lists = await this.serveLists(userId, after)
      this.#exchanges.push({ path, status: 200, answer: toBase64(fromUtf8(JSON.stringify(lists))) })
      return lists
    } catch (error) {
      this.#exchanges.push({ path })
      throw error
    }
  }

  async #exchange(
    url: string,
    init: { readonly body?: string; readonly signal?: AbortSignal },
  ): Promise<Response> {
    // A late answer belongs to the step that asked.
    const exchanges = this.#exchanges
    // The whole address where it is a mirror's.
    const path = url.replace('https://log.example/', '')
    const asked = { path, ...(init.body !== undefined && { body: init.body }) }
    let answer: Response
    try {
      answer = (await this.serve(url, init as never)) as unknown as Response
    } catch (error) {
      exchanges.push({ ...asked, ...(init.signal?.aborted === true && { isLate: true }) })
      throw error
    }
    const bytes = new Uint8Array(await answer.arrayBuffer())
    exchanges.push({ ...asked, status: answer.status, answer: toBase64(bytes) })
    return new Response(bytes, { status: answer.status })
  }

  #memory(): string {
    const kept = this.kept.get(this.#origin)
    const pending = kept?.pending ?? []
    const known = this.#known.get(this.#userId)
    const list =
      known?.list && `, list ${known.list.index} since ${known.list.since.index} ${known.list.since.seq}`
    const index = this.kept.get(`${this.#origin}/index`)
    const indexed = index && `, index ${index.treeSize}`
    return ` | ${kept?.treeSize ?? 'none'}, pending ${pending.map(sizeIn).join(' ')}${indexed ?? ''}${list ?? ''}${
      known === undefined ? '' : `, ${eventsText(known.events)}${questionText(known.question)}`
    }`
  }
}

async function settled<Value>(outcome: Promise<Value>, textOf: (value: Value) => string): Promise<string> {
  try {
    return textOf(await outcome)
  } catch (error) {
    return `rejected ${(error as { code?: string }).code ?? (error as Error).name}`
  }
}

function failureText(verdict: Refusal | Unanswered): string {
  if (verdict.kind === 'unanswered') {
    const { status = '-', code = '-', check } = verdict
    return `unanswered ${status} ${code}${check === undefined ? '' : ` at ${check}`}`
  }
  const { check, evidence } = verdict
  return `refused at ${check}${evidence === undefined ? '' : ` by ${evidence.map(sizeIn).join(' and ')}`}`
}

function lookupText(outcome: LookupOutcome): string {
  if (outcome.kind !== 'verified') return failureText(outcome)
  return `verified ${outcome.index} of ${outcome.checkpoint.treeSize}${completenessText(outcome)}`
}

/** Empty where no index was asked. */
function completenessText(proved: Completeness): string {
  if (proved.complete !== true) return proved.complete === 'unindexed' ? '' : `, ${proved.complete}`
  const { indexes, indexAgeMs, isProved } = proved
  return `, complete [${indexes}] age ${indexAgeMs} ${isProved ? 'proved' : 'unproved'}`
}

function headText(outcome: VerifiedCheckpoint | Refusal | Unanswered): string {
  return outcome.kind === 'verified' ? `verified ${outcome.checkpoint.treeSize}` : failureText(outcome)
}

function ownKeysText(report: OwnKeysReport | Refusal | Unanswered): string {
  if (report.kind === 'refused' || report.kind === 'unanswered') return failureText(report)
  const entries = report.entries.map(({ index }) => index).join(' ')
  if (report.kind === 'clean') return `clean, ${entries}`
  const { foreign, missing, outdated } = report
  const leaves = (keys: typeof foreign) => keys.map(({ index }) => index).join(' ')
  return `alert, foreign ${leaves(foreign)}, missing ${missing.join(' ')}, outdated ${leaves(outdated)}, ${entries}`
}

function devicesText(verdict: VerifiedDevices | Refusal | Unanswered): string {
  if (verdict.kind !== 'verified') return failureText(verdict)
  const devices = verdict.devices.map(({ deviceId, signingKey }) => `${deviceId}${signingKey ? '+' : ''}`)
  const { complete, isProved } = verdict
  const proved = complete === 'unindexed' ? '' : `, complete ${complete} ${isProved ? 'proved' : 'unproved'}`
  return `verified by ${verdict.basis}: ${devices.join(' ')}${proved}; ${eventsText(verdict.events)}${questionText(verdict.question)}`
}

function questionText(question: KeyQuestion | undefined): string {
  return question === undefined ? '' : `, asks ${question.kind} ${question.listHash}`
}

function eventsText(events: readonly DeviceEvent[]): string {
  return `events ${events.map(({ kind, deviceId }) => `${kind}:${deviceId ?? 'all'}`).join(' ')}`
}

/** When a story begins. */
export const TOLD_AT_MS = 1_790_000_000_000

/** The second line of a note is its tree size. */
function sizeIn(note: string): string {
  return note.split('\n')[1] ?? note
}
