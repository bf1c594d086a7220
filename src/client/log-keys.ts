/** The two public keys by which an app knows its log. They come with the app and never from the log's own server. */
import { parseVerifierKey, type VerifierKey } from '../log/note.ts'
import { parseVrfPublicKey } from '../log/vrf.ts'

/** As the operator publishes them: the vkey `name+keyid+base64`, and base64 of the 32-byte VRF key. */
export interface PublishedKeys {
  readonly vkey: string
  readonly vrfPublicKey: string
}

/** `verifier.name` is the origin of the log. */
export interface LogKeys {
  readonly verifier: VerifierKey
  readonly vrfPublicKey: Uint8Array
}

/** Throws `KEY_INVALID` for a key that is not of its form, also for a VRF key under which anyone can make proofs. */
export function parseLogKeys({ vkey, vrfPublicKey }: PublishedKeys): LogKeys {
  return { verifier: parseVerifierKey(vkey), vrfPublicKey: parseVrfPublicKey(vrfPublicKey) }
}
