/** The keys that an app knows its log by. They come with the app and never from the log’s own server. */
import { SignalError } from '../errors.ts'
import { parseVerifierKey, type VerifierKey } from '../log/note.ts'
import { type Policy, parsePolicy } from '../log/policy.ts'
import { parseVrfPublicKey } from '../log/vrf-verify.ts'

/** As the operator publishes them: the vkey `name+keyid+base64`, and base64 of the 32-byte VRF key. */
export interface PublishedKeys {
  readonly vkey: string
  readonly vrfPublicKey: string
}

/**
 * The same with witnesses: the text of a policy (c2sp.org/tlog-policy) with a quorum. It names one log; several times, with
 * one origin, while the log changes its key.
 */
export interface PublishedPolicy {
  readonly policy: string
  readonly vrfPublicKey: string
}

/** `verifier.name` is the origin of the log. */
export interface LogKeys {
  readonly verifier: VerifierKey
  /** One of them signs a checkpoint; `verifier` is the first. */
  readonly verifiers: readonly VerifierKey[]
  readonly vrfPublicKey: Uint8Array
  /** Whose cosignatures a checkpoint needs, if any. */
  readonly quorum?: Policy['quorum']
}

/**
 * Throws `KEY_INVALID` for a key that is not of its form, also for a VRF key under which anyone can make proofs, and
 * `MALFORMED` for a policy that is not, or has no log or several.
 */
export function parseLogKeys(published: PublishedKeys | PublishedPolicy): LogKeys {
  const vrfPublicKey = parseVrfPublicKey(published.vrfPublicKey)
  if (!('policy' in published)) {
    const verifier = parseVerifierKey(published.vkey)
    return { verifier, verifiers: [verifier], vrfPublicKey }
  }
  const { logs, quorum } = parsePolicy(published.policy)
  const verifiers = logs.map(({ key }) => key)
  const [verifier] = verifiers
  const origins = new Set(verifiers.map(({ name }) => name)).size
  if (verifier === undefined || origins > 1)
    throw new SignalError('MALFORMED', `policy has ${origins} logs, not one`)
  return { verifier, verifiers, vrfPublicKey, quorum }
}
