/** Settings of the operator's own check of sign-ins. */

import type { LoginCheckSettings } from '../../delivery/login-check.ts'
import { faultOfOperatorUrl } from '../../delivery/operator-url.ts'
import type { EnvironmentReader } from './environment.ts'

export interface LoginCheckSetting {
  readonly loginCheck?: LoginCheckSettings
}

export function readLoginCheck(reader: EnvironmentReader): LoginCheckSetting {
  const url = reader.formed(
    'CALLSIGN_LOGIN_CHECK_URL',
    isAddress,
    'an https address, or an http address of this machine or a private network, without a password',
  )
  const token = reader.secret('CALLSIGN_LOGIN_CHECK_TOKEN')
  const authority = reader.file('CALLSIGN_LOGIN_CHECK_CA')
  reader.refuseWithout('CALLSIGN_LOGIN_CHECK_URL', ['CALLSIGN_LOGIN_CHECK_TOKEN', 'CALLSIGN_LOGIN_CHECK_CA'])
  if (token !== undefined && !/^[\x21-\x7e]{1,1024}$/.test(token))
    reader.problems.push('CALLSIGN_LOGIN_CHECK_TOKEN has 1 to 1,024 printable ASCII characters and no blank')
  if (url === undefined) return {}
  return {
    loginCheck: {
      url,
      ...(token === undefined ? {} : { token }),
      ...(authority === undefined ? {} : { ca: authority.toString('utf8') }),
    },
  }
}

function isAddress(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { username, password } = new URL(text)
  return faultOfOperatorUrl(text) === undefined && username === '' && password === ''
}
