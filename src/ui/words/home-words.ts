import type { Words } from './shared-words.ts'

export const HOME_WORDS = {} as const satisfies Words
