/** The page of an app with users of its own: they sign in to it, and call one another. */

import { Callsign, indexedDbStorage } from '@callsign/sdk/app'
import { developmentPins } from '@callsign/sdk/app/development'

const main = document.querySelector('main')

async function start() {
  const answer = await fetch('/me')
  if (!answer.ok)
    return show(
      form({ id: 'text', password: 'password' }, 'Sign in', login => post('/login', login).then(start)),
    )
  const { id, callsignUrl } = await answer.json()
  const me = await signedIn(id, callsignUrl)
  await showCalls(me)
}

/** A storage for each user: people may share a browser. */
async function signedIn(id, server) {
  const pins = await developmentPins(server) // an app has them built in
  const me = new Callsign({ server, pins, storage: indexedDbStorage(`calls of ${id}`) })
  if ((await me.resume()) !== undefined) return me
  const { token } = await (await post('/callsign-token')).json()
  await me.signInByToken(token)
  return me
}

async function showCalls(me) {
  let call
  let notice = ''
  const { items: contacts } = await me.contacts.list()
  const reportReasons = await me.contacts.reportReasons()
  const draw = () =>
    show(
      text(notice),
      call === undefined
        ? contacts.map(one => button(`Call ${me.contacts.nameOf(one)}`, () => take(me.call([one]))))
        : callView(),
      form({ with: 'text' }, 'Book', booking => post('/bookings', booking)),
      button('My orders', orders),
    )
  const callView = () => {
    const [other] = call.participants.filter(({ userId }) => userId !== me.userId)
    const rings = call.isIncoming && call.state === 'ringing'
    const report = ({ reason, title }) =>
      button(title, async () => {
        await me.contacts.report(other.userId, { reason, callId: call.callId })
        say('Thank you. A moderator looks at it.')
      })
    return [
      text(rings ? `${me.contacts.nameOf(call.caller)} calls` : `${call.state} ${call.fingerprint ?? ''}`),
      ...(rings ? [button('Answer', () => call.answer())] : []),
      button('Hang up', () => (rings ? call.decline() : call.end())),
      details('Report', reportReasons.map(report)),
    ]
  }
  const take = async starting => {
    call = await starting
    call.on('changed', draw)
    call.on('ended', ({ reason }) => {
      call = undefined
      say(`The call has ended: ${reason}`)
    })
    draw()
  }
  const say = sentence => {
    notice = sentence
    draw()
  }
  const orders = async () => {
    const token = await me.tokenFor('https://api.acme.example')
    const answer = await fetch('/orders', { headers: { authorization: `Bearer ${token}` } })
    say(`Orders of ${(await answer.json()).ordersOf}`)
  }
  me.on('ringing', take)
  me.on('resumed', take)
  me.on('contact_added', async () => {
    contacts.splice(0, contacts.length, ...(await me.contacts.list()).items)
    draw()
  })
  let why
  me.on('session_revoked', ({ reason }) => {
    why = reason
  })
  me.on('signed-out', ({ sentence }) =>
    show(text(why === 'account_suspended' ? 'Your account is suspended.' : sentence)),
  )
  draw()
}

/** `fields` are types of inputs by their names. */
function form(fields, label, act) {
  const element = document.createElement('form')
  for (const [name, type] of Object.entries(fields)) {
    const input = Object.assign(document.createElement('input'), { name, type })
    const labelled = document.createElement('label')
    labelled.append(name, input)
    element.append(labelled)
  }
  element.append(button(label))
  element.onsubmit = event => {
    event.preventDefault()
    act(Object.fromEntries(new FormData(element))).catch(tell)
  }
  return element
}

function post(path, body = {}) {
  const headers = { 'content-type': 'application/json' }
  return fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
}

const show = (...nodes) => main.replaceChildren(...nodes.flat())

function text(content) {
  const element = document.createElement('p')
  element.textContent = content
  return element
}

function button(label, act) {
  const element = document.createElement('button')
  element.textContent = label
  if (act !== undefined) element.onclick = () => Promise.resolve(act()).catch(tell)
  return element
}

const tell = error => alert(error.sentence ?? error)

function details(label, nodes) {
  const element = document.createElement('details')
  element.innerHTML = '<summary></summary>'
  element.firstChild.textContent = label
  element.append(...nodes)
  return element
}

start().catch(tell)
