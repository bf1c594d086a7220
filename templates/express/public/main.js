/** A calling app, put together from the elements of the SDK: `/callsign.js` has defined them, and the global `callsign`. */

import { pins, server } from './pins.js'

const { browserName, Callsign, indexedDbStorage, Media } = callsign

const storage = indexedDbStorage()
const device = { deviceInfo: { platform: 'web', name: browserName(), locale: navigator.language } }
const me = new Callsign({ server, pins, storage, device, language: document.documentElement.lang })

const [main, rings, name, connection, here, notices, signIn, proof] = [
  ...['main', '#rings', '#name', '#connection', '#here'],
  ...['callsign-notices', 'callsign-sign-in', 'callsign-proof'],
].map(selector => document.querySelector(selector))
/** Another tab of this browser is connected. */
here.onclick = () => me.takeOver()
for (const element of [notices, signIn, proof]) element.me = me
signIn.storage = storage

/** Shows calls while no page is open. */
const worker = navigator.serviceWorker?.register('/service-worker.js').catch(() => undefined)
const contacts = make('callsign-contacts', { me })
const rest = [make('callsign-devices', { me }), make('callsign-account', { me, worker })]
let lobby
/** From the lobby, for the call that it starts. */
let choice
/** The policy of server.js allows workers from files alone. */
const newWorker = () => new Worker('/callsign-media-worker.js')
const ringOf = kept(call => make('callsign-ring', { me, call }))
const mediaOf = call => new Media(me, call, { ...(call.isIncoming ? undefined : choice), newWorker })
const pageOf = kept(call => make('callsign-call', { me, call, media: mediaOf(call) }))

contacts.addEventListener('call', ({ detail: { contacts, video } }) => {
  const start = () => me.call(contacts, { video })
  lobby = make('callsign-lobby', { me, video })
  lobby.addEventListener('start', ({ detail }) => {
    choice = detail.choice
    start().catch(error => notices.tell(error, start))
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
  const isRinging = ({ isIncoming, state }) => isIncoming && (state === 'ringing' || state === 'joining')
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
function place(parent, elements) {
  const isSame =
    parent.children.length === elements.length && elements.every(one => one.parentElement === parent)
  if (!isSame) parent.replaceChildren(...elements)
}

function make(tag, members) {
  return Object.assign(document.createElement(tag), members)
}

/** Makes one element for each call. */
function kept(make) {
  const made = new WeakMap()
  return call => {
    const element = made.get(call) ?? make(call)
    made.set(call, element)
    return element
  }
}

me.on('changed', draw)
draw()
