/** Settings of user tokens: the operator's own services that take them, and the keys that sign them. */

import { createHmac } from 'node:crypto'
import {
  generateUserTokenKey,
  type UserTokenKey,
  userTokenKey,
  userTokenKeyTexts,
} from '../../domain/accounts/user-token.ts'
import type { EnvironmentReader } from './environment.ts'

export interface UserTokenConfig {
  /** Whom tokens may be for. */
  readonly tokenAudiences: readonly string[]
  /** As `userTokenKey` takes them; the first signs, and all are listed for those who check. */
  readonly tokenKeys: readonly string[]
}

export function readUserTokenSettings(reader: EnvironmentReader, isDevelopment: boolean): UserTokenConfig {
  const tokenAudiences = reader.list(
    'CALLSIGN_TOKEN_AUDIENCES',
    text => AUDIENCE_FORM.test(text),
    'names of your services such as https://api.example.org',
  )
  const text = reader.secret('CALLSIGN_TOKEN_KEY', 'keys from keygen; the first signs')
  if (!isDevelopment) reader.refuseWithout('CALLSIGN_TOKEN_KEY', ['CALLSIGN_TOKEN_AUDIENCES'])
  if (text === undefined) return { tokenAudiences, tokenKeys: [] }
  const tokenKeys = userTokenKeyTexts(text)
  if (tokenKeys === undefined)
    reader.problems.push('CALLSIGN_TOKEN_KEY is not a list of keys that keygen makes')
  else if (new Set(tokenKeys).size < tokenKeys.length)
    reader.problems.push('CALLSIGN_TOKEN_KEY has one key twice')
  return { tokenAudiences, tokenKeys: tokenKeys ?? [] }
}

/** A development server has a key without a setting: the same for as long as its log has the same keys. */
export function userTokenKeysOf(
  { tokenKeys }: Pick<UserTokenConfig, 'tokenKeys'>,
  isDevelopment: boolean,
  secret: Uint8Array,
): readonly UserTokenKey[] {
  if (tokenKeys.length > 0 || !isDevelopment) return tokenKeys.map(userTokenKey)
  const derived = () => createHmac('sha256', secret).update('development user token').digest()
  return [userTokenKey(generateUserTokenKey(derived))]
}

/** Visible ASCII but the comma. */
const AUDIENCE_FORM = /^[A-Za-z0-9][\x21-\x2b\x2d-\x7e]{0,255}$/
