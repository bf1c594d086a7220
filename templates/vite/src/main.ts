/** A calling app, put together from the elements of `@callsign/sdk/ui`. */

import { type Call, Callsign, indexedDbStorage } from '@callsign/sdk/app'
import { Media } from '@callsign/sdk/ui'
import { pins, server } from './pins.ts'

type Tags = HTMLElementTagNameMap

const me = new Callsign({
  server,
  pins,
  storage: indexedDbStorage(),
  device: { deviceInfo: { platform: 'web', locale: navigator.language } },
  language: document.documentElement.lang,
})
const [main, rings, name, connection] = ['main', '#rings', '#name', '#connection'].map(
  selector => document.querySelector<HTMLElement>(selector)!,
) as [HTMLElement, HTMLElement, HTMLElement, HTMLElement]
for (const tag of ['callsign-notices', 'callsign-proof'] as const) document.querySelector(tag)!.me = me

const signIn = make('callsign-sign-in', { me })
const contacts = make('callsign-contacts', { me })
const home = [contacts, make('callsign-devices', { me }), make('callsign-account', { me })]
let lobby: Tags['callsign-lobby'] | undefined
/** Chosen in the lobby for the call that follows. */
let choice: ConstructorParameters<typeof Media>[2]
const ringOf = kept((call: Call) => make('callsign-ring', { me, call }))
const pageOf = kept((call: Call) => {
  const media = new Media(me, call, choice)
  call.on('ended', () => media.close())
  return make('callsign-call', { me, call, media })
})

contacts.addEventListener('call', event => {
  const { contacts, video } = (event as CustomEvent).detail
  lobby = make('callsign-lobby', { me })
  lobby.addEventListener('start', event => {
    choice = (event as CustomEvent).detail.choice
    void me.call(contacts, { video })
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
  const isRinging = ({ isIncoming, state }: Call) => isIncoming && state === 'ringing'
  const call = me.calls.find(one => !isRinging(one))
  name.textContent = me.user?.displayName ?? ''
  connection.textContent = me.userId === undefined ? '' : me.connection
  document.body.classList.toggle('in-call', call !== undefined)
  place(rings, me.calls.filter(isRinging).map(ringOf))
  place(main, me.userId === undefined ? [signIn] : call ? [pageOf(call)] : lobby ? [lobby] : home)
}

/** Leaves elements alone that are in the page already: they keep the focus, and what is typed into them. */
function place(parent: HTMLElement, elements: readonly HTMLElement[]): void {
  const isSame =
    elements.length === parent.children.length && elements.every(one => one.parentElement === parent)
  if (!isSame) parent.replaceChildren(...elements)
}

function make<Tag extends keyof Tags>(tag: Tag, members: Partial<Tags[Tag]>): Tags[Tag] {
  return Object.assign(document.createElement(tag), members)
}

/** One element for each call. */
function kept<Value>(make: (call: Call) => Value): (call: Call) => Value {
  const made = new WeakMap<Call, Value>()
  return call => {
    const value = made.get(call) ?? make(call)
    made.set(call, value)
    return value
  }
}

me.on('changed', draw)
// Built it is one script; Vite serves modules, which not every browser takes.
navigator.serviceWorker
  ?.register('/service-worker.js')
  .catch(() => navigator.serviceWorker.register('/service-worker.js', { type: 'module' }))
  .catch(() => undefined)
await me.resume()
draw()
