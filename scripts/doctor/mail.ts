/** Mail: connects, speaks TLS, signs in; sends one message to a given receiver. */

import { type MailOptions, MailSender } from '../../src/delivery/mail.ts'
import type { DeliveryOutcome } from '../../src/delivery/outcome.ts'
import { isLoopback } from '../../src/server/settings/config.ts'
import { type Check, type Finding, fails, off, ok } from './finding.ts'

export const checkMail: Check = async ({ config, mailTo }) => {
  const { mail, appName } = config.application
  if (mail === undefined) return [off('mail', 'set CALLSIGN_SMTP_URL and CALLSIGN_MAIL_FROM')]
  const { host, hostname, protocol } = new URL(mail.url)
  const outcome = await using(mail, sender => sender.check())
  if (outcome.kind !== 'sent') return [fails('mail', `${host}: ${adviceOn(outcome.reason)}`)]
  const isEncrypted = protocol === 'smtps:' || (await offersTls(mail))
  const isNear = isLoopback(hostname.replace(/^\[|\]$/g, ''))
  if (!isEncrypted && !isNear && new URL(mail.url).searchParams.get('allowPlain') !== 'true') {
    return [fails('mail', `${host} offers no STARTTLS: codes would travel in the clear; use smtps://`)]
  }
  const unencrypted = isNear ? 'not encrypted, on this machine' : 'not encrypted, as allowPlain=true says'
  const way = isEncrypted ? 'encrypted' : unencrypted
  if (mailTo === undefined) return [ok('mail', `${host} takes us, ${way}; --mail-to ADDRESS sends one`)]
  const letter = {
    to: mailTo,
    subject: `${appName} can send mail`,
    text: 'Sent by the doctor of the server.\n',
  }
  return [judgeLetter(host, way, await using(mail, sender => sender.send(letter)))]
}

function judgeLetter(host: string, way: string, outcome: DeliveryOutcome): Finding {
  if (outcome.kind === 'sent') return ok('mail', `${host} took the message, ${way}; look whether it came`)
  return fails('mail', `${host} takes our login but not the message: ${adviceOn(outcome.reason)}`)
}

async function offersTls(mail: MailOptions): Promise<boolean> {
  const url = new URL(mail.url)
  url.searchParams.set('requireTLS', 'true')
  return (await using({ ...mail, url: url.href }, sender => sender.check())).kind === 'sent'
}

async function using(
  options: MailOptions,
  act: (sender: MailSender) => Promise<DeliveryOutcome>,
): Promise<DeliveryOutcome> {
  const sender = new MailSender(options)
  try {
    return await act(sender)
  } finally {
    sender.close()
  }
}

function adviceOn(reason: string): string {
  if (reason === 'smtp-auth') return 'the login is refused: look at name and password in CALLSIGN_SMTP_URL'
  if (reason === 'tls') {
    return 'no STARTTLS, without which it gets no password: use smtps:// or another port of it'
  }
  if (reason === 'ESOCKET') {
    return `no connection, or its certificate is not trusted (${reason}): look at host and port, and CALLSIGN_SMTP_CA for an own authority`
  }
  if (reason === 'timeout')
    return 'no answer: is the port open from here, and TLS spoken the right way round?'
  if (reason === 'bad-recipient') return '--mail-to is not a mail address'
  return `${reason}: look at CALLSIGN_SMTP_URL, and at CALLSIGN_MAIL_FROM, which the server must allow`
}
