/** The operators' page: reports, people, calls and the audit log, for the people who look after them. */

import { render } from 'lit-html'
import { type LogFacts, Page, type Place } from './page.ts'
import { isOver, keptSession } from './session.ts'
import { titleOf, whole } from './whole.ts'

const root = document.querySelector('main')!
const facts = JSON.parse(root.getAttribute('data-facts') ?? '{}') as LogFacts
root.replaceChildren()

let isDue = false
/** The reader has come to a new view, and what it shows is still on its way. */
let isArriving = false
const page = new Page(facts, draw)

/** However much changes, the page is drawn once in a frame. */
function draw(): void {
  if (isDue) return
  isDue = true
  requestAnimationFrame(() => {
    isDue = false
    render(whole(page), root)
    document.title = titleOf(page)
    if (isArriving) focusHeading()
  })
}

/** Focuses the new view's heading, also when loading replaces it. Leaves the focus alone once the reader has moved it. */
function focusHeading(): void {
  if (document.activeElement === document.body) root.querySelector('h1')?.focus()
  isArriving = root.querySelector('[aria-busy=true]') !== null
}

/** `#person/42`: the view `person` of the id 42. */
function placeOf(hash: string): Place {
  const [view = '', id = ''] = hash.replace(/^#/, '').split('/')
  return { view, id }
}

addEventListener('hashchange', () => {
  isArriving = true
  ;(document.activeElement as HTMLElement | null)?.blur()
  page.change(() => Object.assign(page, { place: placeOf(location.hash), asked: undefined, said: undefined }))
})
setInterval(() => {
  if (page.session !== undefined && isOver(page.session))
    page.leave('Your session has ended. Sign in again to go on.')
  else if (page.session !== undefined) draw()
}, 5_000)

page.place = placeOf(location.hash)
page.session = keptSession()
draw()
