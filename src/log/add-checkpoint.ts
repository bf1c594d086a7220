/** The request body by which a log asks a witness for a cosignature (c2sp.org/tlog-witness, `add-checkpoint`). */
import { decodeBase64, encodeBase64 } from '#primitives'
import { SignalError } from '../errors.ts'
import { parseDecimal } from './decimal.ts'
import { HASH_BYTES, type Hash } from './hash.ts'

export interface AddCheckpoint {
  /** The size that the witness cosigned last; 0 for none. */
  readonly oldSize: number
  /** The consistency proof from there to the checkpoint. */
  readonly proof: readonly Hash[]
  /** The checkpoint with its signatures. */
  readonly note: string
}

export function formatAddCheckpoint({ oldSize, proof, note }: AddCheckpoint): string {
  return `old ${oldSize}\n${proof.map(hash => `${encodeBase64(hash)}\n`).join('')}\n${note}`
}

/** Throws `MALFORMED` for another form, more than 63 hashes, and sizes from 2^53 on. The note is not looked at. */
export function parseAddCheckpoint(body: string): AddCheckpoint {
  const end = body.indexOf('\n\n')
  if (end < 0) throw malformed('has no blank line')
  const [old, ...proof] = body.slice(0, end).split('\n')
  if (!old!.startsWith(OLD)) throw malformed('does not begin with the old size')
  if (proof.length > PROOF_HASHES_MAX) throw malformed(`has a proof of more than ${PROOF_HASHES_MAX} hashes`)
  return {
    oldSize: parseDecimal(old!.slice(OLD.length)),
    proof: proof.map(parseHash),
    note: body.slice(end + 2),
  }
}

function parseHash(line: string): Hash {
  const hash = decodeBase64(line)
  if (hash.length !== HASH_BYTES) throw malformed(`has a hash of ${hash.length} bytes`)
  return hash
}

function malformed(reason: string): SignalError {
  return new SignalError('MALFORMED', `add-checkpoint ${reason}`)
}

const OLD = 'old '
const PROOF_HASHES_MAX = 63
