/** Writes the words of pushes for Android and iOS. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { phoneWords } from './phone-words.ts'

for (const [name, text] of phoneWords()) {
  const path = join(import.meta.dirname, '..', '..', '..', name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
