/** News of keys as sentences. */

import type { KeyEvent } from '../../app/app.ts'
import type { NameOf } from '../sentence.ts'
import { type Word, word } from '../words.ts'

/** Undefined where the failed action says it, or there is nothing to do about it. */
export function newsOf(event: KeyEvent, ownUserId: string | undefined, nameOf: NameOf): string | undefined {
  switch (event.kind) {
    case 'refused':
      return event.evidence && word('news-two-logs', nameOf(event.userId), event.check)
    case 'own-key-alert':
      return undefined
    case 'own-list-alert':
      return word('news-own-list')
    default: {
      if (event.userId === ownUserId) return event.kind === 'reset' ? word('news-own-reset') : undefined
      const key = NEWS[event.kind]
      return key && word(key, nameOf(event.userId))
    }
  }
}

const NEWS: Readonly<Partial<Record<KeyEvent['kind'], Word>>> = {
  'added-by-list': 'news-added-by-list',
  reset: 'news-reset',
  unlisted: 'news-unlisted',
  added: 'news-added',
  replaced: 'news-replaced',
  'left-out': 'news-left-out',
}
