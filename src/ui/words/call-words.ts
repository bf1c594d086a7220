import type { Words } from './shared-words.ts'

export const CALL_WORDS = {} as const satisfies Words
