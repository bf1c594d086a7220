/** Proofs to break: every way of spoiling one, for both kinds of proof. */
import { flipBit } from './bytes.ts'

/** Complete trees, one leaf more and one less, and some ragged ones. */
export const MUTATED_SIZES = [
  1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, 32, 33, 64, 127, 128, 129, 171, 255, 256, 257,
]

/** The proof with each hash flipped in one bit, dropped, doubled, and swapped with the one before it. */
export function* mutations(proof: readonly Uint8Array[]): Generator<[string, Uint8Array[]]> {
  for (const [at, hash] of proof.entries()) {
    yield [`flipped at ${at}`, proof.with(at, flipBit(hash, (at * 37) % 256))]
    yield [`dropped at ${at}`, proof.toSpliced(at, 1)]
    yield [`doubled at ${at}`, proof.toSpliced(at, 0, hash)]
    yield [`foreign hash before ${at}`, proof.toSpliced(at, 0, FOREIGN)]
    if (at > 0) yield [`swapped at ${at}`, proof.with(at, proof[at - 1]!).with(at - 1, hash)]
  }
  yield ['added at the end', [...proof, FOREIGN]]
}

export function sameHashes(a: readonly Uint8Array[], b: readonly Uint8Array[]): boolean {
  return a.length === b.length && a.every((hash, at) => Buffer.compare(hash, b[at]!) === 0)
}

const FOREIGN = new Uint8Array(32).fill(7)
