/** A calling app, put together from the elements of `@callsign/sdk/ui`. */

import { type Call, Callsign, indexedDbStorage } from '@callsign/sdk/app'
import { browserName, type CallWish, Media, type MediaChoice } from '@callsign/sdk/ui'
import { pins, server } from './pins.ts'

type Tags = HTMLElementTagNameMap

const storage = indexedDbStorage()
const device = { deviceInfo: { platform: 'web', name: browserName(), locale: navigator.language } }
const me = new Callsign({ server, pins, storage, device, language: document.documentElement.lang })

const [main, rings, name, connection] = (['main', '#rings', '#name', '#connection'] as const).map(
  selector => document.querySelector<HTMLElement>(selector)!,
) as [HTMLElement, HTMLElement, HTMLElement, HTMLElement]
/** Another tab of this browser is connected. */
const here = document.querySelector<HTMLButtonElement>('#here')!
here.onclick = () => me.takeOver()
const notices = document.querySelector('callsign-notices')!
const signIn = document.querySelector('callsign-sign-in')!
for (const element of [notices, signIn, document.querySelector('callsign-proof')!]) element.me = me
signIn.storage = storage

/** Shows calls while no page is open. Built it is one script; Vite serves modules, which not every browser takes. */
const worker = navigator.serviceWorker
  ?.register('/service-worker.js')
  .catch(() => navigator.serviceWorker.register('/service-worker.js', { type: 'module' }))
  .catch(() => undefined)
const contacts = make('callsign-contacts', { me })
const rest = [make('callsign-devices', { me }), make('callsign-account', { me, worker })]
let lobby: Tags['callsign-lobby'] | undefined
/** From the lobby, for the call that it starts. */
let choice: MediaChoice | undefined
const ringOf = kept(call => make('callsign-ring', { me, call }))
const mediaOf = (call: Call) => new Media(me, call, call.isIncoming ? undefined : choice)
const pageOf = kept(call => make('callsign-call', { me, call, media: mediaOf(call) }))

contacts.addEventListener('call', event => {
  const { contacts, video } = (event as CustomEvent<CallWish>).detail
  const start = async () => void (await me.call(contacts, { video }))
  lobby = make('callsign-lobby', { me, video })
  lobby.addEventListener('start', event => {
    choice = (event as CustomEvent).detail.choice
    start().catch(error => notices.tell(error, start))
    leaveLobby()
  })
  lobby.addEventListener('cancel', leaveLobby)
  draw()
})

function leaveLobby(): void {
  lobby = undefined
  draw()
}

function draw(): void {
  const isRinging = ({ isIncoming, state }: Call) =>
    isIncoming && (state === 'ringing' || state === 'joining')
  const call = me.calls.find(one => !isRinging(one))
  name.textContent = me.user?.displayName ?? ''
  connection.textContent = me.userId === undefined ? '' : me.connection
  here.hidden = me.connection !== 'waiting' && me.connection !== 'elsewhere'
  place(rings, me.calls.filter(isRinging).map(ringOf))
  // Another device has to approve this one first.
  const home = me.restriction === undefined ? [contacts, ...rest] : rest
  place(main, me.userId === undefined ? [] : call ? [pageOf(call)] : lobby ? [lobby] : home)
}

/** Leaves elements alone that are in the page already: they keep the focus, and what is typed into them. */
function place(parent: HTMLElement, elements: readonly HTMLElement[]): void {
  const isSame =
    parent.children.length === elements.length && elements.every(one => one.parentElement === parent)
  if (!isSame) parent.replaceChildren(...elements)
}

function make<Tag extends keyof Tags>(tag: Tag, members: Partial<Tags[Tag]>): Tags[Tag] {
  return Object.assign(document.createElement(tag), members)
}

/** Makes one element for each call. */
function kept<Value extends HTMLElement>(make: (call: Call) => Value): (call: Call) => Value {
  const made = new WeakMap<Call, Value>()
  return call => {
    const element = made.get(call) ?? make(call)
    made.set(call, element)
    return element
  }
}

me.on('changed', draw)
draw()
