/** A device key's name (contract 2.5). */

import Type from 'typebox'
import { oneOf } from './one-of.ts'

export const PublicKeyHash = Type.String({
  description: 'The vrfHash that the log has the key under, base64',
})

export const KeyAlgorithm = oneOf(['P-256', 'RSA-2048'])
