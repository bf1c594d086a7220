/**
 * Two years of people, phones and numbers by a clock that tests move: an owner with a phone never loses the account to a
 * code, an owner who lost all devices gets in after the wait, and the next owner of a number never sees the last one's contacts.
 */

import t from 'tap'
import { prove } from '../../support/application.ts'
import { randomFrom, runsOf, seedOf } from '../../support/seed.ts'
import {
  answerSignIn,
  type Client,
  clientOf,
  DAY_MS,
  enterCode,
  fetchWaiting,
  refresh,
  register,
  shownSignIns,
  signUp,
  startOver,
} from '../../support/sign-in-people.ts'
import { sized } from '../../support/size.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

/** The acts of a person on a day, a whole number. */
type Habit = (day: number) => Promise<void>

interface Town {
  readonly api: TestApi
  readonly random: () => number
  /** Called with a sentence where something happens that never may. */
  readonly wrong: (what: string) => void
}

/** A person who tries to sign in by an address, and asks each day for the outcome. */
class Asker {
  readonly #town: Town
  readonly #address: string
  #waitingId: string | undefined
  /** How the last request was answered. */
  code = ''
  client: Client | undefined

  constructor(town: Town, address: string) {
    this.#town = town
    this.#address = address
  }

  get isIn(): boolean {
    return this.client !== undefined
  }

  async ask(): Promise<void> {
    const { api } = this.#town
    const asked = this.#waitingId
    let answer = asked === undefined ? await enterCode(api, this.#address) : await fetchWaiting(api, asked)
    if (answer.body.code === 'SIGN_IN_GONE') answer = await enterCode(api, this.#address)
    this.code = answer.body.code ?? 'in'
    this.#waitingId = answer.status === 403 ? answer.body.waitingId : undefined
    if (answer.status === 200) this.client = clientOf(answer, this.#address)
  }
}

/** Uses the phone, and refuses whatever sign-in it shows. */
async function usePhone({ api, wrong }: Town, phone: Client): Promise<void> {
  const { status, body } = await refresh(api, phone)
  if (status !== 200) return wrong(`the phone of ${phone.userId} was signed out: ${body.code}`)
  for (const { id } of await shownSignIns(api, phone)) await answerSignIn(api, phone, String(id), false)
}

async function isWhole({ api, wrong }: Town, phone: Client): Promise<void> {
  await refresh(api, phone)
  const { status } = await api.send('GET /app/api/friend', { token: phone.token })
  if (status !== 200) wrong(`${phone.userId} has no contacts any more`)
}

/** An owner whose phone lies in a drawer for up to two days, and a thief with every code that is sent. */
async function robbed(town: Town, address: string): Promise<Habit> {
  const { api, random, wrong } = town
  const phone = await signUp(api, address)
  let [thief, usesAgainOn] = [new Asker(town, address), 0]
  return async day => {
    if (day >= usesAgainOn) {
      await usePhone(town, phone)
      await isWhole(town, phone)
      usesAgainOn = day + 1 + Math.floor(random() * 2)
    }
    if (random() < 0.3) await thief.ask()
    if (thief.client?.userId === phone.userId) wrong(`a thief is in the account of ${phone.userId}`)
    if (thief.isIn) thief = new Asker(town, address)
  }
}

/** An owner who loses the phone on a day, perhaps while a thief holds one code of theirs, and tries each day. */
async function bereft(town: Town, address: string): Promise<Habit> {
  const { api, random, wrong } = town
  const phone = await signUp(api, address)
  const lostOn = Math.floor(random() * 500)
  const beginsOn = lostOn + Math.floor(random() * 60)
  const [owner, thief] = [new Asker(town, address), new Asker(town, address)]
  const thiefComesOn = beginsOn + Math.floor(random() * 4)
  let isHome = false
  return async day => {
    if (day < lostOn) await usePhone(town, phone)
    if (day === thiefComesOn && !owner.isIn) await thief.ask()
    if (day < beginsOn || isHome) return
    await owner.ask()
    const { client } = owner
    if (client === undefined) {
      if (day > beginsOn + 6)
        wrong(`the owner of ${phone.userId} is kept out on day ${day - beginsOn}: ${owner.code}`)
      return
    }
    if (client.userId !== phone.userId) wrong(`the owner of ${phone.userId} was given another account`)
    await register(api, client)
    await prove(api.world, client.token)
    const { status } = await startOver(api, client, 0)
    if (status !== 200) wrong(`the owner of ${phone.userId} can not make a list: ${status}`)
    await isWhole(town, client)
    isHome = true
  }
}

/** A number that gets a new owner half a year after the last one went silent, or while the last one's phone lives on. */
async function recycled(town: Town, address: string, { livesOn = false, mail = '' } = {}): Promise<Habit> {
  const { api, random, wrong } = town
  const phone = await signUp(api, address)
  if (mail !== '') await addMail(town, phone, mail)
  const silentFrom = Math.floor(random() * 200)
  const nextOwnerOn = silentFrom + 180 + Math.floor(random() * 200)
  const next = new Asker(town, address)
  return async day => {
    if (livesOn || day < silentFrom) await usePhone(town, phone)
    if (day < nextOwnerOn || next.isIn) return
    await next.ask()
    if (next.client?.userId === phone.userId)
      wrong(`the next owner of a number is in the account of ${phone.userId}`)
    if (day > nextOwnerOn + 14) wrong(`the next owner of a number is kept out: ${next.code}`)
  }
}

async function addMail({ api }: Town, { token }: Client, value: string): Promise<void> {
  await prove(api.world, token)
  const { body } = await api.send('POST /app/api/user/login-methods', {
    token,
    body: { kind: 'email', value },
  })
  const otp = await api.otpFor(value)
  await api.send('POST /app/api/verify', { token, body: { challengeId: body.challengeId, otp } })
}

const RUNS = runsOf('CALLSIGN_SIGN_IN_RUNS', { short: 1, long: 10 })

for (let run = 0; run < RUNS; run++) {
  const seed = seedOf()
  t.test(`two years, seed ${seed}`, sized(), async t => {
    const api = await openTestApi(t, { log: 'appended', rehearses: false })
    const wrongs: string[] = []
    const town: Town = { api, random: randomFrom(seed), wrong: what => wrongs.push(what) }
    let people = 0
    const number = () => `+49151234560${String(people++).padStart(2, '0')}`
    const habits = [
      await robbed(town, number()),
      await robbed(town, 'robbed@example.org'),
      await bereft(town, number()),
      await bereft(town, 'bereft@example.org'),
      await recycled(town, number()),
      await recycled(town, number(), { mail: 'recycled@example.org' }),
      await recycled(town, number(), { livesOn: true }),
    ]
    for (let day = 0; day < 730; day++) {
      for (const habit of habits) await habit(day)
      await api.advance(DAY_MS)
    }
    t.strictSame(wrongs, [])
  })
}
