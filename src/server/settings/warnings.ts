/** Settings that are allowed and hardly meant. */

import type { Config } from './config.ts'

export interface Warning {
  readonly event: string
  readonly advice: string
}

/** Settings to look at. */
export function warningsOf(config: Config): readonly Warning[] {
  const { isDevelopment, log, application } = config
  const openFiles = config.openFiles.map(advice => ({ event: 'secret-file-open', advice }))
  if (isDevelopment) return openFiles
  const { mail, sms, apple, providers, testIdentifiers } = application
  const ways = [mail, sms, apple, ...providers, ...testIdentifiers]
  return [
    ...openFiles,
    ...(log.headFile === undefined && config.node === undefined ? [HEAD_FILE_UNSET] : []),
    ...(config.node !== undefined && config.stompTcpPort !== undefined ? [NO_STOMP_TCP] : []),
    ...(ways.every(way => way === undefined) ? [NOBODY_SIGNS_IN] : []),
    ...(application.stepUpS === 0 ? [STEP_UP_OFF] : []),
  ]
}

/** Settings that may well be meant. */
export function notesOf({ isDevelopment, log: { keys } }: Config): readonly Warning[] {
  return isDevelopment || keys?.ktIndexPrivateKey !== undefined ? [] : [NO_INDEX]
}

const HEAD_FILE_UNSET = {
  event: 'log-head-file-unset',
  advice: 'set CALLSIGN_LOG_HEAD_FILE to notice a roll-back',
}
const NO_STOMP_TCP = {
  event: 'stomp-tcp-not-served',
  advice: 'CALLSIGN_STOMP_TCP_PORT is for a server without CALLSIGN_DATABASE_URL',
}
const STEP_UP_OFF = {
  event: 'step-up-off',
  advice: 'with CALLSIGN_AUTH_STEP_UP_SECONDS=0 a stolen session is enough to take an account or to end it',
}
const NOBODY_SIGNS_IN = {
  event: 'nobody-can-sign-in',
  advice:
    'set CALLSIGN_SMTP_URL, CALLSIGN_SMS_URL, CALLSIGN_OIDC_PROVIDERS or CALLSIGN_APPLE_CLIENT_IDS, unless your backend signs its users in by the server API',
}
const NO_INDEX = {
  event: 'index-unset',
  advice:
    'set KT_INDEX_PRIVATE_KEY, and lookups prove that they are complete: `callsign keygen --index --origin O` makes it',
}
