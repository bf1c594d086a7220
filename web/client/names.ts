/** Names of people, devices and programs. Most come from other people, and are shown with care. */

/** The user's own name for a person, else the person's display name. */
export function personName(person: { readonly displayName: string; readonly alias?: string }): string {
  return person.alias ?? person.displayName
}

/** A name must not change its sentence's direction, and must be visible. */
export function shownName(name: string): string {
  return visible(name) ?? 'Unnamed device'
}

/** A program by its own name. The server leaves out the words that all browsers begin with. */
export function programName(userAgent: string): string {
  const system = nameIn(userAgent, SYSTEMS)
  if (system === undefined || !userAgent.startsWith('(')) return visible(userAgent) ?? 'An unknown program'
  return `${nameIn(userAgent, BROWSERS) ?? 'A browser'} on ${system}`
}

/** The name that the person's other devices show for this new one. */
export function browserName(): string {
  return `${nameIn(navigator.userAgent, BROWSERS) ?? 'browser'}, development client`
}

function visible(name: string): string | undefined {
  const plain = name.replace(/[\u202a-\u202e\u2066-\u2069]/g, '')
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(plain) ? plain : undefined
}

function nameIn(userAgent: string, names: typeof BROWSERS | typeof SYSTEMS): string | undefined {
  return names.find(([mark]) => userAgent.includes(mark))?.[1]
}

/** Edge and Opera call themselves Chrome too, and Chrome calls itself Safari. */
const BROWSERS = [
  ['Firefox/', 'Firefox'],
  ['Edg/', 'Edge'],
  ['OPR/', 'Opera'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
] as const
/** Android calls itself Linux too, and iOS calls itself like Mac OS. */
const SYSTEMS = [
  ['Android', 'Android'],
  ['iPhone', 'an iPhone'],
  ['iPad', 'an iPad'],
  ['Windows', 'Windows'],
  ['Mac OS', 'a Mac'],
  ['Linux', 'Linux'],
] as const
