/** User tokens: whether those who check them find the key that signs, at the address that tokens name. */

import { userTokenKey } from '../../src/domain/accounts/user-token.ts'
import { type Check, fails, off, ok, reasonOf } from './finding.ts'
import { ask, membersOf } from './http.ts'

export const checkUserTokens: Check = async ({ config: { application, publicUrl } }) => {
  const { tokenAudiences, tokenKeys } = application
  const [signing] = tokenKeys.map(text => userTokenKey(text).jwk.kid)
  if (signing === undefined)
    return [off(CHECK, 'set CALLSIGN_TOKEN_KEY_FILE to the key that keygen --token prints')]
  if (tokenAudiences.length === 0)
    return [off(CHECK, 'set CALLSIGN_TOKEN_AUDIENCES to the services that tokens may be for')]
  const signed = `key ${signing} signs, for ${tokenAudiences.join(', ')}`
  if (publicUrl === undefined) return [ok(CHECK, signed)]
  const url = `${publicUrl}/.well-known/jwks.json`
  try {
    const { status, text } = await ask({ skews: [] }, url)
    const { keys } = membersOf(text)
    const kids = Array.isArray(keys) ? keys.map(key => membersOf(JSON.stringify(key)).kid) : undefined
    if (status !== 200 || kids === undefined)
      return [fails(CHECK, `${url} answers ${status}, and no keys: have the proxy pass it on`)]
    if (!kids.includes(signing))
      return [
        fails(CHECK, `${url} does not list ${signing}, which signs: restart every node with the same keys`),
      ]
    return [ok(CHECK, `${signed}; ${url} lists it`)]
  } catch (error) {
    // `public url` says why the server is not reached.
    return [ok(CHECK, `${signed}; whether ${url} lists it was not seen (${reasonOf(error)})`)]
  }
}

const CHECK = 'user tokens'
