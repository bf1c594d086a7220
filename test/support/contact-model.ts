/**
 * Friend requests as a person would keep them on paper, for comparison with the store: one list of requests that is
 * searched from end to end, no tables, no counters.
 */

const DAY_MS = 86_400_000

interface PaperRequest {
  readonly from: number
  readonly to: number
  readonly atMs: number
  /** Made by a search, so the sender never sees it. */
  readonly isSecret: boolean
  isByToken: boolean
  /** Whether the sender still sees it. */
  isBeforeSender: boolean
  isBeforeReceiver: boolean
}

export class ContactModel {
  nowMs: number
  readonly #requests: PaperRequest[] = []
  readonly #friends = new Set<string>()
  readonly #blocks = new Set<string>()
  readonly #declinedAtMs = new Map<string, number>()

  constructor(nowMs: number) {
    this.nowMs = nowMs
  }

  /** `created`, `repeated`, `crossed` or the code of the refusal. */
  ask(from: number, to: number, route: 'id' | 'token' | 'address'): string {
    if (this.areFriends(from, to)) return 'ALREADY_FRIENDS'
    if (this.#blocks.has(`${from}>${to}`)) return 'USER_BLOCKED'
    const mine = this.#standing(from, to)
    if (mine !== undefined && (!mine.isSecret || route === 'address')) {
      if (route === 'token') mine.isByToken = true
      return 'repeated'
    }
    const theirs = this.#standing(to, from)
    if (theirs !== undefined) {
      this.#makeFriends(theirs)
      return 'crossed'
    }
    if (mine !== undefined) this.#takeBack(mine)
    const declinedAtMs = this.#declinedAtMs.get(`${from}>${to}`) ?? Number.NEGATIVE_INFINITY
    const arrives = !this.#blocks.has(`${to}>${from}`) && this.nowMs - declinedAtMs >= 7 * DAY_MS
    this.#requests.push({
      from,
      to,
      atMs: this.nowMs,
      isSecret: route === 'address',
      isByToken: route === 'token',
      isBeforeSender: true,
      isBeforeReceiver: arrives,
    })
    return 'created'
  }

  /** Whether there was one to accept. */
  accept(by: number, from: number): boolean {
    const request = this.#standing(from, by)
    if (!request?.isBeforeReceiver) return false
    this.#makeFriends(request)
    return true
  }

  decline(by: number, from: number): boolean {
    const request = this.#standing(from, by)
    if (!request?.isBeforeReceiver) return false
    request.isBeforeReceiver = false
    this.#declinedAtMs.set(`${from}>${by}`, this.nowMs)
    return true
  }

  cancel(by: number, to: number): boolean {
    const request = this.#standing(by, to)
    if (request === undefined || request.isSecret) return false
    this.#takeBack(request)
    return true
  }

  remove(by: number, other: number): boolean {
    return this.#friends.delete(`${by}>${other}`) && this.#friends.delete(`${other}>${by}`)
  }

  block(by: number, other: number): void {
    if (this.#blocks.has(`${by}>${other}`)) return
    this.#blocks.add(`${by}>${other}`)
    this.remove(by, other)
    this.decline(by, other)
    const mine = this.#standing(by, other)
    if (mine !== undefined) this.#takeBack(mine)
  }

  unblock(by: number, other: number): void {
    this.#blocks.delete(`${by}>${other}`)
  }

  areFriends(one: number, other: number): boolean {
    return this.#friends.has(`${one}>${other}`)
  }

  /** Those whose requests lie before the user, newest first. */
  incoming(of: number): number[] {
    const before = this.#open().filter(({ to, isBeforeReceiver }) => to === of && isBeforeReceiver)
    return before.map(({ from }) => from).reverse()
  }

  outgoing(of: number): number[] {
    const before = this.#open().filter(({ from, isSecret }) => from === of && !isSecret)
    return before.map(({ to }) => to).reverse()
  }

  blocked(of: number): number[] {
    return [...this.#blocks].filter(each => each.startsWith(`${of}>`)).map(each => Number(each.split('>')[1]))
  }

  mayReadKeys(asker: number, owner: number): boolean {
    if (asker === owner || this.areFriends(asker, owner)) return true
    const received = this.#standing(owner, asker)
    return (
      this.#standing(asker, owner)?.isByToken === true ||
      (received?.isByToken === true && received.isBeforeReceiver)
    )
  }

  #open(): PaperRequest[] {
    return this.#requests.filter(
      ({ isBeforeSender, atMs }) => isBeforeSender && this.nowMs - atMs < 30 * DAY_MS,
    )
  }

  #standing(sender: number, receiver: number): PaperRequest | undefined {
    return this.#open().find(({ from, to }) => from === sender && to === receiver)
  }

  #takeBack(request: PaperRequest): void {
    request.isBeforeSender = false
    request.isBeforeReceiver = false
  }

  #makeFriends(request: PaperRequest): void {
    const { from, to } = request
    this.#takeBack(request)
    this.#friends.add(`${from}>${to}`).add(`${to}>${from}`)
    this.#declinedAtMs.delete(`${from}>${to}`)
    this.#declinedAtMs.delete(`${to}>${from}`)
  }
}
