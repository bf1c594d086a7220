/** The one way in which a stranger refuses something. */

/** The check that failed; `step` names it, so that a test can distinguish refusals. */
export class VerificationError extends Error {
  readonly step: VerificationStep

  constructor(step: VerificationStep, message: string) {
    super(`${step}: ${message}`)
    this.name = 'VerificationError'
    this.step = step
  }
}

export type VerificationStep =
  | 'verifier key'
  | 'note'
  | 'origin'
  | 'signature'
  | 'checkpoint'
  | 'proof text'
  | 'index'
  | 'path'
  | 'root'
  | 'vrf'
  | 'vrf hash'
  | 'public key'
  | 'fetch'
  | 'tile'
  | 'entry'

/** Throws unless the condition holds. */
export function check(condition: boolean, step: VerificationStep, message: string): asserts condition {
  if (!condition) throw new VerificationError(step, message)
}
