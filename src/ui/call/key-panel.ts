/** The digits of a call's key, and the devices that it was sealed for. */

import { html, type TemplateResult } from 'lit'
import type { Call, Callsign, Device } from '../../app/app.ts'
import type { View } from '../element.ts'
import { type Word, word } from '../words.ts'
import { listText } from './status.ts'

export function keyView(call: Call, me: Callsign, devices: readonly Device[]): TemplateResult {
  return html`<h3>${word('call-encrypted')}: ${word('call-same-digits')}</h3>
    <p class="digits" aria-label=${word('call-digits-of-key')} role="group">${call.fingerprint}</p>
    <p class="quiet">${word('call-digits-explained')}</p>
    <p class="quiet">${word('call-key-number', call.keys[0]?.epoch ?? '')} <span class="sealed-for">${sealedForView(call, me, devices)}</span>.</p>`
}

/** The user's own devices by name, and the number of each other person's. */
function sealedForView({ sealedFor, participants }: Call, me: Callsign, devices: readonly Device[]): View {
  const own = sealedFor
    .filter(({ userId }) => userId === me.userId)
    .map(({ deviceId }) => {
      const name = devices.find(one => one.deviceId === deviceId)?.name
      if (deviceId === me.deviceId) return word('call-this-device')
      return name === undefined ? word('call-own-other-device') : word('call-own-device', name)
    })
  const others = participants.flatMap(({ userId, name }) => {
    const count = sealedFor.filter(one => one.userId === userId).length
    if (count === 0 || userId === me.userId) return []
    const key: Word = count === 1 ? 'call-device-of' : 'call-devices-of'
    return word(key, name, count)
  })
  return html`${listText([...own, ...others])}`
}
