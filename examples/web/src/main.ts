/** A calling app: sign-in, contacts by link, calls with sound and picture. */

import {
  type Call,
  Callsign,
  CallsignError,
  type Contact,
  hasCode,
  indexedDbStorage,
  type Opened,
  type ProofNeeded,
  type Question,
} from '@callsign/sdk/app'
import {
  renewWebPush,
  subscribeToWebPush,
  unsubscribeFromWebPush,
  type WebPushState,
} from '@callsign/sdk/app/web-push'
import { showMedia } from './media.ts'
import { pins, server } from './pins.ts'
import { button, form, item, section, text } from './view.ts'

// The sentences of errors are in the page's language.
const { lang: language } = document.documentElement
const device = { deviceInfo: { platform: 'web', locale: navigator.language } }
const me = new Callsign({ server, pins, storage: indexedDbStorage(), device, language })
/** Shows calls while this page is closed. Undefined where there are none, as without HTTPS. */
const worker = navigator.serviceWorker
  // Built it is one script; Vite serves modules, which not every browser takes.
  ?.register('/service-worker.js')
  .catch(() => navigator.serviceWorker.register('/service-worker.js', { type: 'module' }))
  .catch(() => undefined)
let closedRings: WebPushState = 'off'
const page = document.querySelector('main')!
let contacts: readonly Contact[] = []
let requests: readonly { readonly userId: string; readonly displayName: string }[] = []
let link = ''
/** Whom a link or code leads to, before they are asked. */
let opened: Opened | undefined
let notice = ''
/** What is asked about a key. */
let keyQuestion: HTMLElement | undefined
/** Who the person is, while something waits for the proof. */
let proofQuestion: HTMLElement | undefined
/** Sign-ins that wait for this person's answer. */
let waitingSignIns: Awaited<ReturnType<typeof me.sessions.waiting>> = []
/** The form for the code, while one is asked for, or what a sign-in waits for. */
let question: HTMLElement | undefined

/** What fails is said, and stays until something else happens. */
async function act(work: () => Promise<unknown>): Promise<void> {
  try {
    notice = ''
    keyQuestion = undefined
    await work()
  } catch (error) {
    if (hasCode(error, 'KEYS_RESET')) keyQuestion = askAboutKeys(error.members, work)
    else notice = sentenceOf(error)
  }
  draw()
}

function sentenceOf(error: unknown): string {
  return error instanceof CallsignError ? error.sentence : String(error)
}

/** A contact's keys are new: the person compares the code, or goes on with what they wanted. */
function askAboutKeys(members: Readonly<Record<string, unknown>>, work: () => Promise<unknown>): HTMLElement {
  const [userId, listHash] = [String(members.userId), String(members.listHash)]
  const contact = contacts.find(one => one.userId === userId)
  const name = contact === undefined ? 'A contact' : me.contacts.nameOf(contact)
  const code = text('')
  return section(
    `${name}’s keys are new`,
    text(
      'There is a new device, or somebody else is signed in under that name. Compare the code with them, or go on?',
    ),
    code,
    button('Compare a code', () =>
      me.contacts.comparisonCode(userId).then(
        digits => code.replaceChildren(digits),
        error => code.replaceChildren(sentenceOf(error)),
      ),
    ),
    button('Go on', () => act(() => me.contacts.acceptKeys(userId, listHash).then(work))),
    button('Not now', () => act(async () => {})),
  )
}

/** Before an old invitation is answered, or one for a device that only the server calls the person's own. */
async function answer(call: Call, evenIfOld = false): Promise<void> {
  try {
    await call.answer({ evenIfOld })
  } catch (error) {
    if (!hasCode(error, 'INVITATION_OLD', 'OWN_DEVICE_IN_SET')) throw error
    const { name } = error.members
    const goOn = () =>
      name === undefined ? answer(call, true) : call.acceptDevice(`${name}`).then(() => answer(call))
    const [yes, no] = [button('Go on', () => act(goOn)), button('Not now', () => act(async () => {}))]
    keyQuestion = section('Answer?', text(error.sentence), yes, no)
  }
}

function askCode({ sentTo, error }: Question): Promise<string> {
  return new Promise(resolve => {
    const hint = error?.sentence ?? `A code is on its way to ${sentTo}.`
    question = section('The code', text(hint), form('Code', 'Go on', resolve))
    draw()
  })
}

/** What changes how the account is reached waits until the person has shown who they are. */
function askForProof(proof: ProofNeeded, hint = 'Confirm who you are, and it goes on.'): void {
  const end = () => {
    proofQuestion = undefined
    draw()
  }
  const give = (way: () => Promise<unknown>, then = end) =>
    way().then(then, error => askForProof(proof, sentenceOf(error)))
  const code =
    proof.sentTo === undefined
      ? button('Send a code', () => give(proof.sendCode, () => askForProof(proof)))
      : form(`The code sent to ${proof.sentTo}`, 'Confirm', value => give(() => proof.confirm(value)))
  proofQuestion = section(
    'Is it you?',
    text(hint),
    ...(proof.ways.includes('passkey') ? [button('Use a passkey', () => give(proof.byPasskey))] : []),
    ...(proof.ways.includes('code') ? [code] : []),
    button('Not now', () => {
      proof.refuse()
      end()
    }),
  )
  draw()
}

async function signIn(address: string): Promise<void> {
  try {
    await me.signIn(address, askCode, { displayName: address.split('@')[0]! })
  } catch (error) {
    if (!hasCode(error, 'SIGN_IN_WAITING')) throw error
    await finishSignIn()
  } finally {
    question = undefined
  }
  await load()
}

/** Another device of the account has to let this one in: that may take days, and a reload of the page. */
async function finishSignIn(): Promise<void> {
  const waiting = await me.waitingSignIn()
  if (waiting === undefined) return
  const until = new Date(waiting.until).toLocaleString()
  question = section(
    'Approve this sign-in on another device',
    text(waiting.signInCode),
    text(`It shows these digits, too. Without an answer by ${until}, you are in. This page may be closed.`),
  )
  draw()
  await me.finishSignIn().finally(() => {
    question = undefined
  })
}

async function load(): Promise<void> {
  if (me.restriction !== undefined) return draw()
  const [friends, incoming] = await Promise.all([me.contacts.list(), me.contacts.requests()])
  waitingSignIns = await me.sessions.waiting()
  contacts = friends.items
  requests = incoming.items.map(({ user }) => user)
  draw()
}

async function setClosedRings(set: typeof subscribeToWebPush): Promise<void> {
  const registration = await worker
  closedRings = registration === undefined ? 'unsupported' : await set(me, registration)
  if (closedRings === 'refused') notice = 'The browser does not let this page show notifications.'
  drawUnlessTyping()
}

/** A name that only this person sees; an empty one takes it back. */
async function rename(contact: Contact): Promise<void> {
  const name = prompt(`Your name for ${contact.displayName}`, contact.alias ?? '')
  if (name === null) return
  await me.contacts.rename(contact.userId, name)
  await load()
}

function follow(call: Call): void {
  showMedia(me, call)
  call.on('ended', ({ reason }) => {
    notice = `The call has ended: ${reason}.`
    draw()
  })
}

function callView(call: Call): HTMLElement {
  const { caller, state, isIncoming, isVerified, participants, fingerprint } = call
  const others = participants.filter(({ userId }) => userId !== me.userId).map(one => one.name)
  // A stranger may have chosen a contact's name.
  const who = caller.isContact === false ? `${caller.name}, who is not a contact,` : caller.name
  const title = isIncoming && state === 'ringing' ? `${who} calls` : others.join(', ')
  if (isIncoming && state === 'ringing') {
    const verified = isVerified === undefined ? 'Checking the key' : isVerified ? 'Verified' : 'Not verified'
    return section(
      title,
      text(verified),
      button('Answer', () => act(() => answer(call))),
      button('Decline', () => act(() => call.decline())),
    )
  }
  const hangUp = button('Hang up', () => act(() => (call.isHost ? call.end() : call.leave())))
  return section(title, text(state), text(fingerprint ?? ''), hangUp)
}

/** Devices of the person, and sign-ins, that ask to be let in. */
function newcomerViews(): HTMLElement[] {
  const { listState } = me.devices
  if (listState?.kind === 'waiting')
    return [section('Approve this device on another of your devices', text(listState.code))]
  const devices = (listState?.kind === 'listed' ? listState.waiting : []).map(device =>
    section(
      `${device.name} is new. Does it show this code?`,
      text(device.code),
      button('Yes: approve', () => act(() => me.devices.approve(device))),
    ),
  )
  const answer = (id: string, approve: boolean) => act(() => me.sessions.answer(id, approve).then(load))
  const signIns = waitingSignIns.map(({ id, signInCode, userAgent }) =>
    section(
      `${userAgent} signs in. Does it show this code?`,
      text(signInCode),
      button('Yes: let me in', () => answer(id, true)),
      button('That is not me: refuse', () => answer(id, false)),
    ),
  )
  return [...devices, ...signIns]
}

/** The person is shown before anything is asked of them. */
function openedViews(): HTMLElement[] {
  if (opened === undefined) return []
  const { request } = opened
  const end = () => {
    opened = undefined
  }
  const name = opened.kind === 'link' ? opened.displayName : `User ${opened.userId}`
  const relation = opened.kind === 'link' ? (opened.relation ?? 'none') : 'none'
  const ask = button('Ask to be contacts', () => act(() => request().finally(end).then(load)))
  return [
    section(
      name,
      text(RELATIONS[relation]),
      ...(relation === 'self' || relation === 'contact' ? [] : [ask]),
      button('Not now', () => act(async () => end())),
    ),
  ]
}

const RELATIONS = {
  none: 'You are not contacts yet.',
  self: 'This is you.',
  contact: 'You are contacts already.',
  outgoing: 'You have asked them, and they have not answered.',
  incoming: 'They have asked you.',
}

function draw(): void {
  const parts: HTMLElement[] = notice === '' ? [] : [section('', text(notice))]
  for (const asked of [keyQuestion, proofQuestion]) if (asked !== undefined) parts.push(asked)
  if (me.userId === undefined) {
    const address = section(
      'Sign in',
      form('Email address', 'Send a code', value => act(() => signIn(value))),
      button('Sign in with a passkey', () => act(() => me.signInByPasskey().then(load))),
    )
    page.replaceChildren(...parts, question ?? address)
    return
  }
  const people = contacts.map(contact =>
    item(
      me.contacts.nameOf(contact),
      button('Call', () => act(async () => follow(await me.call([contact], { video: true })))),
      button('Rename', () => act(() => rename(contact))),
    ),
  )
  const asking = requests.map(({ userId, displayName }) =>
    item(
      `${displayName} asks`,
      button('Accept', () => act(() => me.contacts.accept(userId).then(load))),
    ),
  )
  const share = button('Share a link', () =>
    act(async () => {
      link = (await me.contacts.shareLink()).link
    }),
  )
  const add = form('A link or code that you were given', 'Open', value =>
    act(async () => {
      opened = await me.contacts.open(value)
    }),
  )
  const passkey = button('Add a passkey', () =>
    act(async () => {
      await me.addPasskey()
      notice = 'Next time you sign in without a code.'
    }),
  )
  const rings =
    closedRings === 'on'
      ? button('Do not ring me when this page is closed', () =>
          act(() => setClosedRings(unsubscribeFromWebPush)),
        )
      : button('Ring me when this page is closed', () => act(() => setClosedRings(subscribeToWebPush)))
  const signOut = button('Sign out', () =>
    act(async () => {
      await setClosedRings(unsubscribeFromWebPush)
      await me.signOut()
    }),
  )
  page.replaceChildren(
    ...parts,
    ...me.calls.map(callView),
    ...newcomerViews(),
    ...(me.restriction === undefined
      ? [...openedViews(), section('People', ...asking, ...people, share, text(link), add)]
      : []),
    section(me.user?.displayName ?? 'You', text(me.connection), passkey, rings, signOut),
  )
}

/** Typing is not disturbed by what happens meanwhile. */
function drawUnlessTyping(): void {
  const { activeElement } = document
  if (!(activeElement instanceof HTMLInputElement && activeElement.value !== '')) draw()
}

me.on('changed', drawUnlessTyping)
for (const type of [
  'friend_request',
  'friend_request_cancelled',
  'contact_added',
  'contact_changed',
  'contact_removed',
  'sign_in_waiting',
  'sign_in_ended',
  'ready',
] as const) {
  me.on(type, load)
}
for (const type of ['error', 'signed-out'] as const) {
  me.on(type, ({ sentence }) => {
    notice = sentence
    draw()
  })
}
me.on('ready', () => setClosedRings(renewWebPush))
me.on('proof-needed', proof => askForProof(proof))
me.on('keys', event => {
  notice = `The devices of a contact have changed, or their keys do not hold (${event.kind}).`
  draw()
})
for (const name of ['ringing', 'resumed'] as const) me.on(name, follow)
void act(async () => {
  if ((await me.resume()) === undefined) await finishSignIn()
  if (me.userId !== undefined) await load()
})
