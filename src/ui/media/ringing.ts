/** The rings of a page share its title and its loudspeaker: one tone, however many calls come in. */

import { Tone, type ToneName } from '../tone.ts'

const tone = new Tone()
/** What each ring says in the title; the newest is last. */
const titles = new Map<object, string>()
let sounding: ToneName | undefined
/** The page's title without a ring, and with it. */
let shown: { readonly before: string; readonly own: string } | undefined

export function startRinging(ring: object, title: string, name: ToneName): void {
  titles.set(ring, title)
  if (sounding !== name) tone.start(name)
  sounding = name
  showTitle()
}

/** The last one ends the tone, and gives the title back. */
export function stopRinging(ring: object): void {
  if (!titles.delete(ring)) return
  if (titles.size > 0) return showTitle()
  tone.stop()
  sounding = undefined
  if (shown !== undefined && document.title === shown.own) document.title = shown.before
  shown = undefined
}

function showTitle(): void {
  // The page may have given itself another since.
  const before = shown !== undefined && document.title === shown.own ? shown.before : document.title
  const own = `${[...titles.values()].at(-1)} · ${before}`
  shown = { before, own }
  document.title = own
}
