/** The sentence that an element shows for a failure. */

import { CallsignError } from '../app/app.ts'

export function sentenceOf(error: unknown): string {
  if (error instanceof CallsignError) return error.sentence
  return error instanceof Error ? error.message : String(error)
}
