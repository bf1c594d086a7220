import type { Words } from './shared-words.ts'

export const MEDIA_WORDS = {} as const satisfies Words
