/** Joins the parts of the page for the person who is signed in to this tab: the views' buttons, and signing in and out. */

import { Callsign, type CallsignError, type Device, hasCode, type Question } from '../../src/app/app.ts'
import { developmentPins } from '../../src/app/development.ts'
import { newsOf } from '../../src/ui/home/news.ts'
import { shownName } from '../../src/ui/names.ts'
import { whenText } from '../../src/ui/when.ts'
import { Account, readPasskeysHere } from './account.ts'
import { Calls } from './calls.ts'
import { ClosedRings } from './closed-rings.ts'
import { Contacts } from './contacts.ts'
import { browserName } from './names.ts'
import { Sessions } from './sessions.ts'
import { type Connection, type KeyQuestion, SIGNED_OUT, type State, type Store } from './state.ts'
import { storage } from './storage.ts'
import { holdName, isOwnTab, mayKeep, namesTaken, releaseName } from './tabs.ts'

/** For one person: the SDK, and what the page does with it. */
interface Parts {
  readonly me: Callsign
  readonly contacts: Contacts
  readonly calls: Calls
  readonly sessions: Sessions
  readonly account: Account
  readonly closedRings: ClosedRings
}

/** The code that the SDK waits for. */
interface Asked extends Pick<Question, 'resend' | 'resendIn'> {
  readonly answer: (otp: string) => void
  readonly giveUp: (error: Error) => void
}

export class App {
  readonly #store: Store
  #parts: Parts | undefined
  #asked: Asked | undefined
  /** Ends the turn of a button at the sign-in: with the next question, signed in, or in vain. */
  #endTurn: (error?: unknown) => void = () => {}
  #link = linkIn(location)
  #usedCode: string | undefined
  /** The address that was used to sign in in this tab. */
  identifier: string | undefined

  constructor(store: Store) {
    this.#store = store
  }

  get me(): Callsign {
    return this.#signedIn.me
  }

  get contacts(): Contacts {
    return this.#signedIn.contacts
  }

  get calls(): Calls {
    return this.#signedIn.calls
  }

  get sessions(): Sessions {
    return this.#signedIn.sessions
  }

  get account(): Account {
    return this.#signedIn.account
  }

  get closedRings(): ClosedRings {
    return this.#signedIn.closedRings
  }

  /** By the server's clock: this computer's may be wrong. */
  get nowMs(): number {
    return this.#signedIn.me.nowMs()
  }

  /** Shows the sign-in, or goes on with the person whom this tab was signed in as. */
  async start(): Promise<void> {
    if (!window.isSecureContext) return this.#store.update({ stage: 'unusable' })
    if (!mayKeep()) return this.#store.update({ stage: 'forgetful' })
    if (!(await isOwnTab())) {
      sessionStorage.clear()
      await isOwnTab()
      this.#store.say('good', 'This tab is a copy of another: it can be somebody else.')
    }
    await this.act('start', () => this.#begin(({ me }) => me.resume()))
    if (this.#state.stage !== 'starting') return
    if ((await this.#parts?.me.waitingSignIn()) === undefined) await this.#showSignIn()
    else await this.#finishSignIn()
  }

  /** Runs a button's action: the button waits, and a failure is shown. */
  async act(name: string, action: () => Promise<void> | void): Promise<void> {
    if (this.#state.doing.has(name)) return
    this.#store.update({ doing: new Set([...this.#state.doing, name]) })
    try {
      await action()
    } catch (error) {
      if (hasCode(error, 'KEYS_RESET')) this.#askAboutKeys(error, () => this.act(name, action))
      else this.#store.sayFailure(error)
    } finally {
      this.#store.update({ doing: new Set([...this.#state.doing].filter(one => one !== name)) })
    }
  }

  async goOn(question: KeyQuestion): Promise<void> {
    this.putQuestionAway()
    await question.goOn()
  }

  putQuestionAway(): void {
    this.#store.update({ question: undefined })
  }

  #askAboutKeys(error: CallsignError, act: () => Promise<void>): void {
    const userId = String(error.members.userId)
    const goOn = async () => {
      await this.#signedIn.me.contacts.acceptKeys(userId, String(error.members.listHash))
      await act()
    }
    this.#store.ask(error, goOn, userId)
  }

  askForCode(identifier: string, name: string): Promise<void> {
    const more = name === '' ? {} : { displayName: name }
    this.identifier = identifier
    return this.#turn(() => {
      this.#begin(({ me }) => me.signIn(identifier, question => this.#ask(identifier, question), more)).then(
        () => this.#endTurn(),
        async error => {
          if (hasCode(error, 'SIGN_IN_WAITING')) {
            void this.#finishSignIn()
            return this.#endTurn()
          }
          await this.#showSignIn()
          this.#endTurn(error)
        },
      )
    })
  }

  async askForAnotherCode(): Promise<void> {
    const { challenge } = this.#state
    if (this.#asked === undefined || challenge === undefined) return
    await this.#asked.resend()
    const resendAtMs = Date.now() + this.#asked.resendIn * 1000
    this.#store.update({ challenge: { ...challenge, resendAtMs } })
    this.#store.say('good', 'Another code is on its way; the last one is void.')
  }

  signInByPasskey(): Promise<void> {
    return this.#begin(({ me }) => me.signInByPasskey())
  }

  /** The newest code that the development server has sent to the address, but for the one that was used last. */
  async fetchCode(identifier: string): Promise<string> {
    // As the server writes numbers; an address has none of these.
    const to = identifier.startsWith('+') ? identifier.replace(/[\s().-]/g, '') : identifier
    for (let tries = 1; ; tries++) {
      const answer = await fetch(`/dev/inbox?to=${encodeURIComponent(to)}`)
      if (!answer.ok)
        throw new Error('The server shows codes to its own machine alone: the code is in its terminal.')
      const { items } = (await answer.json()) as { readonly items: readonly { readonly otp?: string }[] }
      const otp = items.find(item => item.otp !== undefined)?.otp
      if (otp !== undefined && otp !== this.#usedCode) {
        this.#usedCode = otp
        return otp
      }
      if (tries === INBOX_TRIES)
        throw new Error('There is no code in the inbox yet. Look into the terminal, or try again.')
      await new Promise(resolve => setTimeout(resolve, INBOX_PAUSE_MS))
    }
  }

  async signIn(otp: string): Promise<void> {
    await this.#turn(() => this.#asked?.answer(otp))
    this.#usedCode = otp
  }

  goBack(): void {
    this.#asked?.giveUp(new Error('The sign-in was given up.'))
  }

  /** Back from a sign-in that waits. It goes on when the same address signs in again. */
  beginAgain(): void {
    void this.#parts?.me.close()
    this.#leave()
  }

  async signOut(): Promise<void> {
    const { me, closedRings } = this.#signedIn
    await closedRings.end().catch(error => this.#sayFailure(error))
    await me.signOut()
    this.#leave()
  }

  async endAccount(): Promise<void> {
    const parts = this.#signedIn
    const sentence = await parts.account.delete()
    // The server ends the session, and says so, before or after its answer.
    await parts.me.signOut()
    if (this.#parts === parts) this.#leave()
    this.#store.say('good', sentence)
  }

  /** Removes another device, so that there is room for this one, which is registered now. */
  async makeRoom({ deviceId }: Device): Promise<void> {
    const { me } = this.#signedIn
    await me.request('DELETE devices/{deviceId}', undefined, { deviceId }).catch(error => {
      // The wish is fulfilled: another device was faster, or the answer to a first try was lost.
      if (!hasCode(error, 'DEVICE_NOT_FOUND')) throw error
    })
    await this.#begin(() => me.resume())
  }

  /** Brings the connection to this tab; another tab of the same person has had it. */
  connectHere(): void {
    this.#signedIn.me.takeOver()
  }

  putInvitationAway(): void {
    this.#store.update({ opened: undefined })
  }

  async copyLink(): Promise<void> {
    await navigator.clipboard.writeText(this.#state.shareLink ?? '')
    this.#store.say('good', 'The link is copied.')
  }

  async markSeen(): Promise<void> {
    await this.#signedIn.me.history.markHistorySeen()
    this.#store.update({ missedCalls: 0 })
  }

  /** Another link was opened in this tab. */
  async onHashChange(): Promise<void> {
    this.#link = linkIn(location)
    if (this.#state.stage === 'signed-in') await this.act('share', () => this.#openLink())
  }

  dismiss(id: number): void {
    this.#store.dismiss(id)
  }

  get #state(): State {
    return this.#store.state
  }

  get #signedIn(): Parts {
    if (this.#parts === undefined) throw new Error('You are signed out.')
    return this.#parts
  }

  /**
   * The SDK for the next person. Choice: the server gives the log's public keys, because this is a development page for any
   * server. An app has them built in, since a lying server could give false ones.
   */
  async #open(): Promise<Parts> {
    if (this.#parts !== undefined) return this.#parts
    const server = location.origin
    const device = { deviceInfo: { platform: 'web', name: browserName(), locale: navigator.language } }
    const { lang: language } = document.documentElement
    const me = new Callsign({ server, pins: await developmentPins(server), storage, device, language })
    const parts = {
      me,
      contacts: new Contacts(me, this.#store),
      calls: new Calls(me, this.#store),
      sessions: new Sessions(me, this.#store),
      account: new Account(me, this.#store),
      closedRings: new ClosedRings(me, this.#store),
    }
    this.#parts = parts
    this.#hear(parts)
    return parts
  }

  #hear(parts: Parts): void {
    const { me, contacts, calls, sessions } = parts
    const failed = (error: unknown) => {
      if (this.#parts === parts) this.#sayFailure(error)
    }
    const load = (what: () => Promise<unknown>) => void what().catch(failed)
    me.on('changed', () => this.#onChanged(parts))
    me.on('ringing', () => calls.show())
    me.on('resumed', () => calls.show())
    me.on('connection', () => this.#onConnection(parts))
    me.on('error', failed)
    me.on('signed-out', error => {
      void parts.closedRings.end().catch(() => undefined)
      this.#leave(this.#state.doing.has('delete') ? undefined : error)
    })
    me.on('keys', event => {
      const news = newsOf(event, me.userId, userId => this.#store.nameOf(userId))
      if (news !== undefined) this.#store.say('bad', news)
    })
    for (const type of ['call_cancelled', 'call_missed', 'call_answered_elsewhere'] as const)
      me.on(type, () => load(() => calls.loadHistory()))
    for (const type of ['friend_request', 'friend_request_cancelled', 'contact_removed'] as const)
      me.on(type, () => load(() => contacts.load()))
    me.on('contact_changed', () => load(() => Promise.all([contacts.load(), calls.loadHistory()])))
    me.on('contact_added', ({ displayName }) => {
      this.#store.say('good', `${displayName} is a contact now.`)
      load(() => contacts.load())
    })
    me.on('device_added', ({ name }) => {
      const question = 'Was that you? If not, remove it from your devices.'
      this.#store.say('bad', `A new device signs in as you: ${shownName(name)}. ${question}`)
      load(() => Promise.all([this.#loadDevices(), sessions.load()]))
    })
    me.on('device_removed', ({ name }) => load(() => this.#onDeviceRemoved(name)))
    me.on('device_push_lost', ({ deviceId, name }) => {
      if (deviceId === me.deviceId) parts.closedRings.onLost()
      this.#store.say('bad', `${name} gets no pushes any more: another device took its token.`)
    })
    me.on('session_started', event => load(() => sessions.onStarted(event)))
    me.on('session_revoked', () => load(() => sessions.load()))
    me.on('session_ending', ({ endsAt }) =>
      this.#store.say('bad', `Your session here ends: ${whenText(new Date(endsAt))}. Sign in again before.`),
    )
    me.on('sign_in_ended', ({ outcome }) => sessions.onAnswered(outcome))
    me.on('login_method_lost', ({ value }) =>
      this.#store.say('bad', `${value} opens another account now: you sign in here by it no more.`),
    )
  }

  #turn(act: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#endTurn = error => (error === undefined ? resolve() : reject(error))
      act()
    })
  }

  /** Shows that the SDK asks for a code, and waits for it. */
  #ask(identifier: string, { sentTo, otpLength, resendIn, resend, error }: Question): Promise<string> {
    const resendAtMs = this.#state.challenge?.resendAtMs ?? Date.now() + resendIn * 1000
    const challenge = { identifier, sentTo, otpLength, resendAtMs }
    this.#store.update({ stage: 'code', notices: [], challenge })
    this.#endTurn(error)
    return new Promise((answer, giveUp) => {
      this.#asked = { resend, resendIn, answer, giveUp }
    })
  }

  /** Waits for another device to approve the sign-in, also after a reload. */
  async #finishSignIn(): Promise<void> {
    const parts = await this.#open()
    const waiting = await parts.me.waitingSignIn()
    this.#store.update({ stage: 'waiting', challenge: undefined, waiting })
    try {
      await this.#begin(({ me }) => me.finishSignIn())
    } catch (error) {
      if (this.#parts !== parts) return
      if (this.#state.stage !== 'waiting') return this.#store.sayFailure(error)
      this.#store.update({ waitedInVain: this.#store.sentenceOf(error) })
    }
  }

  async #showSignIn(): Promise<void> {
    const passkeysHere = await readPasskeysHere()
    this.#store.update({
      stage: 'signed-out',
      challenge: undefined,
      namesTaken: await namesTaken(),
      passkeysHere,
    })
  }

  /** Signs in, or goes on with a session. */
  async #begin(act: (parts: Parts) => Promise<unknown>): Promise<void> {
    const parts = await this.#open()
    try {
      if ((await act(parts)) !== undefined) await this.#enter(parts)
    } catch (error) {
      if (hasCode(error, 'DEVICE_LIMIT')) return this.#askForRoom(parts)
      // The kept session is of a device with other keys, and would be gone on with for ever.
      if (hasCode(error, 'SESSION_HAS_DEVICE')) await parts.me.signOut()
      if (!areKeysLost(error)) throw error
      await storage.put(String(error.members.key), null)
      this.#store.say('bad', 'This browser has lost the keys of its device, and is a new one now.')
      await this.#begin(({ me }) => me.resume())
    }
  }

  async #enter(parts: Parts): Promise<void> {
    const { me } = parts
    const { userId, displayName, restriction } = me.user ?? (await me.account.read())
    holdName(displayName)
    const user = { userId, displayName }
    this.#store.update({ stage: 'signed-in', challenge: undefined, user, restriction })
    this.#onChanged(parts)
    if (restriction === undefined) await this.#openLink()
    await this.#checkOwnKey()
  }

  async #askForRoom({ me }: Parts): Promise<void> {
    const { userId, displayName, restriction } = await me.request('GET user', undefined)
    const user = { userId, displayName }
    this.#store.update({ stage: 'crowded', challenge: undefined, user, restriction })
    await this.#loadDevices()
  }

  async #checkOwnKey(): Promise<void> {
    this.#store.update({ ownKey: { kind: 'checking' } })
    try {
      const report = await this.#signedIn.me.devices.checkKey()
      if (report.kind === 'clean') {
        const { index } = report.entries.at(-1)!
        const treeSize = report.checkpoint?.treeSize ?? 0
        const { complete, isProved } = report
        const proved = { complete, isProved }
        return this.#store.update({ ownKey: { kind: 'clean', index, treeSize, proved } })
      }
      const sentence =
        report.foreign.length > 0
          ? 'The log holds another key in the name of this device.'
          : 'The log does not show this device’s own key, so that others can’t call it.'
      this.#store.update({ ownKey: { kind: 'doubtful', sentence } })
    } catch (error) {
      const kind = hasCode(error, 'KEYS_REFUSED') ? 'doubtful' : 'unchecked'
      this.#store.update({ ownKey: { kind, sentence: this.#store.sentenceOf(error) } })
    }
  }

  /** Asks for the owner of the link that this tab was opened with. */
  async #openLink(): Promise<void> {
    const link = this.#link
    if (link === undefined) return
    await this.contacts.open(link)
    // Else it would be asked again with each reload.
    this.#link = undefined
    history.replaceState(undefined, '', location.pathname)
  }

  #onChanged(parts: Parts): void {
    const { me, calls, contacts } = parts
    if (this.#parts !== parts) return
    calls.show()
    if (me.userId === undefined) return
    this.#store.update({ missedCalls: me.badge?.missedCalls ?? 0 })
    const { listState } = me.devices
    this.#onRestriction(parts)
    if (listState === this.#state.listState) return
    this.#store.update({ listState })
    // The link names the list.
    if (this.#state.shareLink !== undefined) void contacts.showLink()
  }

  /** A device that was approved has everything to load. */
  #onRestriction({ me }: Parts): void {
    const { restriction } = me
    if (me.user === undefined || restriction === this.#state.restriction) return
    this.#store.update({ restriction })
    if (restriction === undefined) void this.act('load', () => this.#load().then(() => this.#openLink()))
  }

  #onConnection(parts: Parts): void {
    const { me } = parts
    if (this.#parts !== parts) return
    const { connection, connectionFailures } = me
    // The tab that a person has opened last is the one that they look at.
    if (connection === 'waiting') return me.takeOver()
    const isInVain = connection === 'connecting' && connectionFailures >= FAILURES_BEFORE_WORD
    if (isInVain) return void this.#tellWhy(me)
    this.#store.update({ connection })
    if (connection !== 'connected') return
    void this.#load().catch(error => this.#sayFailure(error))
  }

  /** It does not come up: either nothing gets through to the server, or all but WebSocket. */
  async #tellWhy(me: Callsign): Promise<void> {
    const connection: Connection = await fetch('/app/api/meta').then(
      () => 'blocked',
      () => 'unanswered',
    )
    if (me.connection === 'connecting') this.#store.update({ connection })
  }

  async #load(): Promise<void> {
    await this.#loadDevices()
    if (this.#state.restriction !== undefined) return
    const { contacts, calls, sessions, account, closedRings } = this
    const loads = [contacts.load(), calls.loadHistory(), sessions.load(), account.load(), closedRings.load()]
    await Promise.all(loads)
  }

  async #loadDevices(): Promise<void> {
    const { items } = await this.#signedIn.me.request('GET devices', undefined)
    this.#store.update({ devices: items.map(item => ({ ...item, name: shownName(item.name) })) })
  }

  /** In the same words from the event as from the answer: this device gets both, and they are said once. */
  async #onDeviceRemoved(name: string): Promise<void> {
    this.#store.say('good', `${shownName(name)} was removed from your devices.`)
    await this.#loadDevices()
    await this.sessions.load()
  }

  /** For background work: the page already says that this device may do little before it is approved. */
  #sayFailure(error: unknown): void {
    if (!hasCode(error, 'DEVICE_NOT_LISTED')) this.#store.sayFailure(error)
  }

  /** Back to the sign-in. */
  #leave(error?: CallsignError): void {
    this.#parts = undefined
    this.#store.update({ ...SIGNED_OUT, stage: 'starting', doing: this.#state.doing })
    if (error !== undefined) this.#store.sayFailure(error)
    void releaseName().then(() => this.#showSignIn())
  }
}

function areKeysLost(error: unknown): error is CallsignError {
  if (hasCode(error, 'DEVICE_KEYS_LOST')) return true
  return hasCode(error, 'STORAGE_CORRUPT') && /^(keys|device)\./.test(String(error.members.key))
}

/** A share link that the page was opened with: its token is in `#c=`, `#share=` or `?share=`. */
function linkIn({ href }: Location): string | undefined {
  return /[#?&](c|share)=c_/.test(href) ? href : undefined
}

/** The code leaves after the answer to the request that asked for it. */
const INBOX_TRIES = 10
const INBOX_PAUSE_MS = 200
/** One may be a server that starts again. */
const FAILURES_BEFORE_WORD = 3
