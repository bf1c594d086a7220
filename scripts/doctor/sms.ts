/** SMS: whether the gateway can be reached; sends one message to a given receiver. */

import { SmsSender } from '../../src/delivery/sms.ts'
import { type Check, fails, off, ok, reasonOf } from './finding.ts'
import { ask } from './http.ts'

export const checkSms: Check = async patient => {
  const { sms, appName } = patient.config.application
  if (sms === undefined)
    return [off('sms', 'set CALLSIGN_SMS_URL, and _HEADERS and _BODY as the gateway wants them')]
  const { origin, host } = new URL(sms.url)
  if (patient.smsTo === undefined) {
    try {
      // Not the address of messages, which some gateways take a GET of for one.
      await ask(patient, origin, { method: 'HEAD' })
      return [ok('sms', `${host} answers; only --sms-to NUMBER shows whether it takes our messages`)]
    } catch (error) {
      return [fails('sms', `${host} can't be reached (${reasonOf(error)}): look at CALLSIGN_SMS_URL`)]
    }
  }
  const outcome = await new SmsSender(sms).send({ to: patient.smsTo, text: `${appName} can send SMS.` })
  if (outcome.kind === 'sent') return [ok('sms', `${host} took the message; look whether it came`)]
  return [fails('sms', `${host} did not take the message (${outcome.reason}): ${adviceOn(outcome.reason)}`)]
}

function adviceOn(reason: string): string {
  if (/^http-40[13]$/.test(reason)) return 'look at the login in CALLSIGN_SMS_URL or CALLSIGN_SMS_HEADERS'
  if (/^http-4/.test(reason))
    return 'compare CALLSIGN_SMS_BODY and its content type with what the gateway wants'
  return 'look at CALLSIGN_SMS_URL, and whether the gateway is up'
}
