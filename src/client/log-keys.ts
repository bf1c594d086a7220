/** The keys that an app knows its log by. They come with the app and never from the log’s own server. */
import { SignalError } from '../errors.ts'
import { indexOriginOf } from '../log/index-leaf.ts'
import { parseVerifierKey, type VerifierKey } from '../log/note.ts'
import { type Policy, parsePolicy } from '../log/policy.ts'
import { parseVrfPublicKey } from '../log/vrf-verify.ts'

/** As the operator publishes them: the vkey `name+keyid+base64`, and base64 of the 32-byte VRF key. */
export interface PublishedKeys {
  readonly vkey: string
  readonly vrfPublicKey: string
  /** The vkey of the log's index, where the app knows it. */
  readonly indexVkey?: string
}

/**
 * The same with witnesses: the text of a policy (c2sp.org/tlog-policy) with a quorum. It names one log; several times, with
 * one origin, while the log changes its key. A line of the origin `<origin>/index` names the log's index, which answers then
 * have to prove that they are complete by. A member `rebuilders` names the cosigners that rebuild the index before they cosign.
 */
export interface PublishedPolicy {
  readonly policy: string
  readonly vrfPublicKey: string
}

/** The keys that verify the checkpoints of one log. */
export interface CheckpointKeys {
  /** The first one; its name is the origin of the log. */
  readonly verifier: VerifierKey
  /** One of them signs a checkpoint. */
  readonly verifiers: readonly VerifierKey[]
  /** Whose cosignatures a checkpoint needs, if any. */
  readonly quorum?: Policy['quorum']
}

export interface LogKeys extends CheckpointKeys {
  readonly vrfPublicKey: Uint8Array
  readonly index?: IndexKeys
}

/** The output log of the log's index. */
export interface IndexKeys extends CheckpointKeys {
  /** Whether its quorum is of cosigners that rebuild the index. */
  readonly isRebuilt: boolean
  /** Whether answers have to prove that they are complete, unless the app says otherwise. */
  readonly isDemanded: boolean
}

/**
 * Throws `KEY_INVALID` for a key that is not of its form, also for a VRF key under which anyone can make proofs, and
 * `MALFORMED` for a policy that is not, or has no log or several.
 */
export function parseLogKeys(published: PublishedKeys | PublishedPolicy): LogKeys {
  const vrfPublicKey = parseVrfPublicKey(published.vrfPublicKey)
  return { ...parseCheckpointKeys(published), vrfPublicKey }
}

/** The same for a reader who looks at checkpoints only, and so needs no VRF key. */
export function parseCheckpointKeys(
  published: Omit<PublishedKeys, 'vrfPublicKey'> | Omit<PublishedPolicy, 'vrfPublicKey'>,
): Omit<LogKeys, 'vrfPublicKey'> {
  if (!('policy' in published)) {
    const verifier = parseVerifierKey(published.vkey)
    const { indexVkey } = published
    const index = indexVkey === undefined ? undefined : indexKeys(verifier, [parseVerifierKey(indexVkey)])
    return { verifier, verifiers: [verifier], ...(index && { index }) }
  }
  const { logs, quorum, rebuilders } = parsePolicy(published.policy)
  const keys = logs.map(({ key }) => key)
  const [verifier] = keys
  if (verifier === undefined) throw new SignalError('MALFORMED', 'policy has no log')
  const isOfIndex = ({ name }: VerifierKey) => keys.some(key => name === indexOriginOf(key.name))
  const verifiers = keys.filter(key => !isOfIndex(key))
  const origins = new Set(verifiers.map(({ name }) => name)).size
  if (origins !== 1) throw new SignalError('MALFORMED', `policy has ${origins} logs, not one`)
  const indexVerifiers = keys.filter(isOfIndex)
  const index =
    indexVerifiers.length === 0 ? undefined : indexKeys(verifiers[0]!, indexVerifiers, { quorum, rebuilders })
  return { verifier: verifiers[0]!, verifiers, quorum, ...(index && { index }) }
}

function indexKeys(
  log: VerifierKey,
  verifiers: readonly VerifierKey[],
  policy?: Pick<Policy, 'quorum' | 'rebuilders'>,
): IndexKeys {
  const [verifier] = verifiers as [VerifierKey]
  const expected = indexOriginOf(log.name)
  const other = verifiers.find(({ name }) => name !== expected)
  if (other !== undefined)
    throw new SignalError('KEY_INVALID', `the key of the index is of ${other.name}, not of ${expected}`)
  return {
    verifier,
    verifiers,
    quorum: policy?.rebuilders ?? policy?.quorum,
    isRebuilt: policy?.rebuilders !== undefined,
    isDemanded: policy !== undefined,
  }
}
