/** Names of people, and of this device. */

import { browserName as nameOfBrowser } from '../../src/ui/names.ts'

/** The user's own name for a person, else the person's display name. */
export function personName(person: { readonly displayName: string; readonly alias?: string }): string {
  return person.alias ?? person.displayName
}

/** The name that the person's other devices show for this new one. */
export function browserName(): string {
  return `${nameOfBrowser().split(',')[0]}, development client`
}
