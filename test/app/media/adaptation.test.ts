/** How much picture a call takes from its line, on lines that are reckoned: of so many kilobits, with a queue before them. */

import fc from 'fast-check'
import t from 'tap'
import { Adaptation } from '../../../src/app/media/adaptation.ts'
import { LinkMeter } from '../../../src/app/media/link-samples.ts'
import { WayDelay } from '../../../src/app/media/way-delay.ts'
import { checkProperty } from '../../support/property.ts'

const VOICE_KBITS = 47
const QUEUE_MS = 300
const STEP_MS = 50
const LOOK_MS = 250

/** A call on a line: its members send as pictures usually are, `weight` times. */
class Call {
  readonly adaptation = new Adaptation()
  readonly #pictures: number
  readonly #weight: number
  #lineKbits = 100_000
  /** Packets that are lost on any line. */
  ownLoss = 0
  #atMs = 0
  #queueKbits = 0
  #offered = 0
  #lost = 0
  #carried = 0
  changes = 0
  heard = 0
  missed = 0

  constructor(pictures: number, weight = 1) {
    this.#pictures = pictures
    this.#weight = weight
  }

  get isWhole(): boolean {
    const { rung, shown } = this.adaptation
    return rung.pictures >= this.#pictures && rung.large >= this.#pictures && !rung.isSlow && shown === rung
  }

  /** Share of the sound that was missed since `look`. */
  get missedShare(): number {
    return this.missed / Math.max(1, this.heard)
  }

  look(): void {
    this.changes = 0
    this.heard = 0
    this.missed = 0
  }

  /** Goes on for so long, on a line of so many kilobits. Resolves with the milliseconds after which all was there. */
  run(seconds: number, lineKbits = this.#lineKbits): number | undefined {
    this.#lineKbits = lineKbits
    const began = this.#atMs
    let wholeMs: number | undefined
    while (this.#atMs < began + seconds * 1_000) {
      this.#step()
      if (this.#atMs % LOOK_MS === 0) this.#sample()
      if (!this.isWhole) wholeMs = undefined
      else wholeMs ??= this.#atMs - began
    }
    return wholeMs
  }

  #pictureKbits(): number {
    const { pictures, large, isSlow } = this.adaptation.rung
    const count = Math.min(pictures, this.#pictures)
    const larges = this.#pictures > 1 ? Math.min(count, large) : count
    const whole = larges * 400 + (count - larges) * 100
    return this.#weight * (isSlow ? 0.42 * whole : whole)
  }

  #step(): void {
    this.#atMs += STEP_MS
    const seconds = STEP_MS / 1_000
    const offered = (VOICE_KBITS + this.#pictureKbits()) * seconds
    const room = (this.#lineKbits * QUEUE_MS) / 1_000
    this.#queueKbits += offered * (1 - this.ownLoss)
    const over = Math.max(0, this.#queueKbits - this.#lineKbits * seconds - room)
    this.#queueKbits -= over
    const carried = Math.min(this.#queueKbits, this.#lineKbits * seconds)
    this.#queueKbits -= carried
    const lost = over + offered * this.ownLoss
    this.#offered += offered
    this.#lost += lost
    this.#carried += carried
    this.heard += VOICE_KBITS * seconds
    this.missed += (lost / offered) * VOICE_KBITS * seconds
  }

  #sample(): void {
    const before = this.adaptation.rung
    const lost = this.#lost / this.#offered
    // As packets of sound, and of a kilobyte of picture.
    const packets = 6 + ((this.#pictureKbits() / 8) * LOOK_MS) / 1_000
    this.adaptation.take({
      atMs: this.#atMs,
      pictures: this.#pictures,
      hasSmall: this.#pictures > 1,
      kbits: (this.#carried / LOOK_MS) * 1_000,
      soundKbits: VOICE_KBITS * (1 - lost),
      lost: (lost * packets) / (packets + 40),
      concealed: lost,
      delayMs: (this.#queueKbits / this.#lineKbits) * 1_000,
    })
    // Told by a third too much or too little, as it comes.
    if (this.adaptation.isAsking)
      this.adaptation.answer(this.#lineKbits * (1 + ((this.#atMs / 250) % 3) / 3 - 1 / 3))
    if (this.adaptation.rung !== before) this.changes++
    this.#offered = 0
    this.#lost = 0
    this.#carried = 0
  }
}

t.test('a wide line carries all', async t => {
  const call = new Call(5)
  t.equal(call.run(60), STEP_MS)
  t.equal(call.changes, 0)
})

t.test(
  'two pictures: small ones at 300 kilobits, fewer at 130, none at 70; and all when the line is back',
  async t => {
    for (const [kbits, rung] of [
      [300, { large: 0 }],
      [130, { pictures: 1, isSlow: true }],
      [70, { pictures: 0 }],
    ] as const) {
      const call = new Call(2, 1.1)
      call.run(5)
      call.run(5, kbits)
      call.look()
      call.run(60, kbits)
      t.match(call.adaptation.shown, rung, `${kbits}`)
      t.ok(
        call.missedShare < (kbits < 100 ? 0.03 : 0.01),
        `${kbits}: ${call.missedShare} of the sound missed`,
      )
      t.ok(call.changes < 20, `${kbits}: ${call.changes} changes in a minute`)
      const wholeMs = call.run(30, 100_000)
      t.ok(wholeMs !== undefined && wholeMs <= 20_000, `${kbits}: all back after ${wholeMs} ms`)
    }
  },
)

t.test('a line that has become narrower is not tried for what it was before', async t => {
  for (let seconds = 5; seconds < 60; seconds++) {
    const call = new Call(2, 1.1)
    call.run(5)
    call.run(seconds, 130)
    call.run(5, 70)
    call.look()
    call.run(15, 70)
    t.equal(call.changes, 0, `after ${seconds} s`)
  }
})

t.test('a sample that happens to have little of the voice makes no room on a line', async t => {
  for (const first of [0, 1]) {
    const adaptation = new Adaptation()
    let asked = 0
    for (let at = 0; asked < 4; at++) {
      const isFull = at > 8 && at < 24
      adaptation.take({
        atMs: at * LOOK_MS,
        pictures: 2,
        hasSmall: true,
        kbits: 60,
        soundKbits: VOICE_KBITS + ((at + first) % 2 === 0 ? 30 : -30),
        lost: isFull ? 0.3 : 0,
        concealed: 0,
        delayMs: isFull ? QUEUE_MS : 0,
      })
      if (!adaptation.isAsking) continue
      asked++
      t.notOk(adaptation.answer(85), `asked ${asked} times`)
    }
  }
})

t.test('a line of its own losses carries all', async t => {
  const call = new Call(2)
  call.ownLoss = 0.05
  call.run(60)
  t.ok(call.isWhole)
  call.look()
  call.run(60)
  t.equal(call.changes, 0)
})

t.test('on any line the sound is heard, and all is back in time', async t => {
  const line = fc.integer({ min: 80, max: 3_000 })
  const weight = fc.double({ min: 0.3, max: 1.3, noNaN: true })
  const seconds = fc.integer({ min: 8, max: 90 })
  checkProperty(
    t,
    [line, fc.integer({ min: 1, max: 9 }), weight, seconds],
    (kbits, pictures, weight, seconds) => {
      const call = new Call(pictures, weight)
      call.run(10)
      call.run(8, kbits)
      call.look()
      call.run(seconds, kbits)
      const hasSound = call.missed <= 0.02 * VOICE_KBITS * Math.max(20, seconds)
      const wholeMs = call.run(30, 100_000)
      return hasSound && wholeMs !== undefined && wholeMs <= 20_000
    },
  )
})

t.test('frames wait behind a queue; a clock that stumbles is no queue for long', async t => {
  const delay = new WayDelay()
  let atMs = 0
  /** Frames of so many seconds, whose way takes so long. */
  const pass = (seconds: number, wayMs: (at: number) => number, clockMs = 0) => {
    for (let at = 0; at < seconds * 25; at++, atMs += 40) delay.note(atMs + clockMs, atMs + wayMs(at))
  }
  pass(5, at => 1_000 + (at % 7))
  t.ok(delay.ms < 8)
  pass(1, at => 1_000 + 10 * at)
  t.ok(delay.ms > 150, `${delay.ms}`)
  pass(0.2, () => 1_000)
  t.ok(delay.ms < 10, 'it is empty again')
  pass(7, () => 1_000, -300)
  t.ok(delay.ms < 10)
  pass(5, () => 1_000, 100_000)
  t.ok(delay.ms < 10)
})

t.test('losses of the sound count, and those of a picture that begins anew do not', async t => {
  const meter = new LinkMeter()
  const none = { packets: 0, lost: 0, bytes: 0, freezes: 0, played: 0, concealed: 0, level: 0 }
  const voice = (packets: number, lost = 0) => ({
    ...none,
    packets,
    lost,
    bytes: 100 * packets,
    played: 1_920 * packets,
  })
  const look = (sound: object, picture: object, delayMs: number, atMs: number) =>
    meter.take(
      new Map([
        ['voice', { ...none, ...sound }],
        ['picture', { ...none, ...picture }],
      ]),
      () => delayMs,
      atMs,
    )
  look(voice(100), { packets: 100, bytes: 100_000 }, 0, 1_000)
  const anew = look(voice(150), { packets: 150, lost: 20, bytes: 150_000 }, 0, 2_000)
  t.match(anew, { lost: 0, kbits: 440, soundKbits: 40 })
  const full = look(voice(200), { packets: 200, lost: 50, bytes: 200_000 }, 200, 3_000)
  t.ok(full.lost > 0.1, 'a line that is full loses them')
  t.ok(look(voice(250, 10), { packets: 250, lost: 50, bytes: 250_000 }, 0, 4_000).lost > 0.05)
})
