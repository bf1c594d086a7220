/** A calling app, put together from the elements of the SDK: `/callsign.js` has defined them, and the global `callsign`. */

import { pins, server } from './pins.js'

const { Callsign, indexedDbStorage, Media } = callsign

const me = new Callsign({
  server,
  pins,
  storage: indexedDbStorage(),
  device: { deviceInfo: { platform: 'web', locale: navigator.language } },
  language: document.documentElement.lang,
})
const [main, rings, name, connection] = ['main', '#rings', '#name', '#connection'].map(selector =>
  document.querySelector(selector),
)
for (const tag of ['callsign-notices', 'callsign-proof']) document.querySelector(tag).me = me

const signIn = make('callsign-sign-in', { me })
const contacts = make('callsign-contacts', { me })
const home = [contacts, make('callsign-devices', { me }), make('callsign-account', { me })]
let lobby
/** Chosen in the lobby for the call that follows. */
let choice
const ringOf = kept(call => make('callsign-ring', { me, call }))
const pageOf = kept(call => {
  const media = new Media(me, call, choice)
  call.on('ended', () => media.close())
  return make('callsign-call', { me, call, media })
})

contacts.addEventListener('call', ({ detail: { contacts, video } }) => {
  lobby = make('callsign-lobby', { me })
  lobby.addEventListener('start', ({ detail }) => {
    choice = detail.choice
    me.call(contacts, { video })
    leaveLobby()
  })
  lobby.addEventListener('cancel', leaveLobby)
  draw()
})

function leaveLobby() {
  lobby = undefined
  draw()
}

function draw() {
  const isRinging = ({ isIncoming, state }) => isIncoming && state === 'ringing'
  const call = me.calls.find(one => !isRinging(one))
  name.textContent = me.user?.displayName ?? ''
  connection.textContent = me.userId === undefined ? '' : me.connection
  document.body.classList.toggle('in-call', call !== undefined)
  place(rings, me.calls.filter(isRinging).map(ringOf))
  place(main, me.userId === undefined ? [signIn] : call ? [pageOf(call)] : lobby ? [lobby] : home)
}

/** Leaves elements alone that are in the page already: they keep the focus, and what is typed into them. */
function place(parent, elements) {
  const isSame =
    elements.length === parent.children.length && elements.every(one => one.parentElement === parent)
  if (!isSame) parent.replaceChildren(...elements)
}

function make(tag, members) {
  return Object.assign(document.createElement(tag), members)
}

/** One element for each call. */
function kept(make) {
  const made = new WeakMap()
  return call => {
    const element = made.get(call) ?? make(call)
    made.set(call, element)
    return element
  }
}

me.on('changed', draw)
navigator.serviceWorker?.register('/service-worker.js').catch(() => undefined)
await me.resume()
draw()
