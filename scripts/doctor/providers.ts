/** Identity providers: whether the keys that their tokens are checked with can be fetched. */

import { discoveryUrlOf } from '../../src/identity/issuer.ts'
import { type Check, type Finding, fails, off, ok, type Patient, reasonOf } from './finding.ts'
import { ask, membersOf } from './http.ts'

export const checkProviders: Check = async patient => {
  const { providers, apple } = patient.config.application
  const found = await Promise.all(
    providers.map(({ name, issuer, jwksUri }) => checkKeys(patient, `provider ${name}`, issuer, jwksUri)),
  )
  if (providers.length === 0)
    found.push(off('providers', 'set CALLSIGN_OIDC_PROVIDERS for sign-in by others'))
  if (apple === undefined)
    return [...found, off('sign in with apple', 'set CALLSIGN_APPLE_CLIENT_IDS and its key')]
  const { issuer = APPLE, jwksUri = issuer === APPLE ? `${APPLE}/auth/keys` : undefined } = apple
  return [...found, await checkKeys(patient, 'sign in with apple', issuer, jwksUri)]
}

async function checkKeys(
  patient: Patient,
  check: string,
  issuer: string,
  jwksUri?: string,
): Promise<Finding> {
  try {
    const address = jwksUri ?? (await discover(patient, issuer))
    if (address === undefined) return fails(check, `${issuer} has no discovery document: set its jwksUri`)
    const { keys } = membersOf((await ask(patient, address)).text)
    if (!Array.isArray(keys) || keys.length === 0)
      return fails(check, `${address} shows no keys: is it the right address?`)
    return ok(check, `${issuer} shows ${keys.length} keys`)
  } catch (error) {
    return fails(check, `${issuer} can't be reached (${reasonOf(error)}): is outgoing HTTPS open?`)
  }
}

async function discover(patient: Patient, issuer: string): Promise<string | undefined> {
  const { text } = await ask(patient, discoveryUrlOf(issuer))
  const { jwks_uri: address } = membersOf(text)
  return typeof address === 'string' ? address : undefined
}

const APPLE = 'https://appleid.apple.com'
