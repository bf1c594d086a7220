/** One of a crowd: a phone that is in one call at a time, and what it was told of that call. */

import type { CallPart, HeldKey, PartObserver } from './call-part.ts'
import type { Phone } from './phone.ts'
import type { Told } from './told.ts'

/** A breach of the server's promises; `reason` groups equal ones. */
export class Failure extends Error {
  readonly reason: string

  constructor(reason: string, detail = '') {
    super(detail === '' ? reason : `${reason}: ${detail}`)
    this.reason = reason
  }
}

/** Checks that a key opened in a call is the one made for it. */
export class KeyLedger {
  readonly #made = new Map<string, Buffer>()

  made(callId: string, { epoch, bytes }: HeldKey): void {
    this.#made.set(`${callId} ${epoch}`, bytes)
  }

  isRight(callId: string, { epoch, bytes }: HeldKey): boolean {
    return this.#made.get(`${callId} ${epoch}`)?.equals(bytes) === true
  }

  forget(callId: string, epochs: number): void {
    for (let epoch = 1; epoch <= epochs; epoch++) this.#made.delete(`${callId} ${epoch}`)
  }
}

export class Member implements PartObserver {
  readonly phone: Phone
  /** Those whom it can call. */
  readonly contacts: Member[] = []
  isBusy = false
  part: CallPart | undefined = undefined
  readonly #ledger: KeyLedger
  readonly #onTrouble: (failure: Failure) => void
  #told: { readonly told: Told; readonly atMs: number }[] = []
  #waiting: (() => void)[] = []

  constructor(phone: Phone, ledger: KeyLedger, onTrouble: (failure: Failure) => void) {
    this.phone = phone
    this.#ledger = ledger
    this.#onTrouble = onTrouble
    phone.onTold = told => this.#onTold(told)
  }

  get isFree(): boolean {
    return !this.isBusy && this.phone.isOnline
  }

  /** For one call; what came of the last one is forgotten. */
  reserve(): void {
    this.isBusy = true
    this.#told = []
  }

  release(): void {
    this.isBusy = false
    this.part?.finish('over')
    this.part = undefined
  }

  /** Waits for word of a type about a call, and says when it came (`performance.now()`). Throws `Failure`. */
  async hear<Type extends Told['type']>(
    type: Type,
    callId: string,
  ): Promise<{ readonly told: Extract<Told, { type: Type }>; readonly atMs: number }> {
    const find = () =>
      this.#told.find(({ told }) => told.type === type && 'callId' in told && told.callId === callId)
    await this.#inTime(`no ${type}`, async isLate => {
      while (find() === undefined && !isLate()) {
        await new Promise<void>(resolve => this.#waiting.push(resolve))
      }
    })
    return find() as never
  }

  /** Waits until its part in the call has ended. Throws `Failure`. */
  async hearEnd(part: CallPart): Promise<void> {
    await this.#inTime('the end of a call was not told', isLate => this.#until(() => part.isOver, isLate))
  }

  /** Waits for a key of this epoch. Throws `Failure`. */
  async hearKey(part: CallPart, epoch: number): Promise<void> {
    const isThere = () => part.isOver || (part.key?.epoch ?? 0) >= epoch
    await this.#inTime('a new key was not told', isLate => this.#until(isThere, isLate))
  }

  onKey({ callId }: CallPart, key: HeldKey, isOwn: boolean): void {
    if (isOwn) this.#ledger.made(callId, key)
    else if (!this.#ledger.isRight(callId, key)) this.#onTrouble(new Failure('wrong key', callId))
    this.#tellNews()
  }

  onDeed(): void {}

  onTrouble({ callId }: CallPart, sentence: string): void {
    this.#onTrouble(new Failure(sentence.split(':')[0]!.replace(/\d+/g, '…'), `${sentence} (call ${callId})`))
  }

  #onTold(told: Told): void {
    if (!('callId' in told)) return
    if (this.isBusy) this.#told.push({ told, atMs: performance.now() })
    if (told.callId === this.part?.callId) this.part.onTold(told)
    this.#tellNews()
  }

  #tellNews(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  async #until(isSo: () => boolean, isLate: () => boolean): Promise<void> {
    while (!isSo() && !isLate()) await new Promise<void>(resolve => this.#waiting.push(resolve))
  }

  /** A connection that was lost meanwhile begins the time anew: what was missed comes on the next one. */
  async #inTime(reason: string, wait: (isLate: () => boolean) => Promise<void>): Promise<void> {
    let isLate = false
    let connects = this.phone.connects
    const check = () => {
      if (this.phone.isOnline && this.phone.connects === connects) {
        isLate = true
        return this.#tellNews()
      }
      connects = this.phone.connects
      timer = setTimeout(check, WORD_MS_MAX)
    }
    let timer = setTimeout(check, WORD_MS_MAX)
    await wait(() => isLate)
    clearTimeout(timer)
    if (isLate) throw new Failure(reason, `${this.phone.displayName}, device ${this.phone.deviceId}`)
  }
}

/** Whatever has not come by then will not come: invitations and ends take milliseconds. */
const WORD_MS_MAX = 20_000
