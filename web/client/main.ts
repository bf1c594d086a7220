/** The development client: a small calling app in a browser tab, for trying a server out and for reading. */

import { render } from 'lit-html'
import type { Notice } from '../../src/ui/home/home-element.ts'
import { App } from './app.ts'
import { type State, Store } from './state.ts'
import { pageView, titleOf } from './view.ts'

const root = document.querySelector('main')!
/** The last focused element. */
let focused: Element | undefined
/** The item of a list, and the card, that it is in. */
let item: Element | null = null
let card: Element | null = null
/** The heading that took it over. */
let given: Element | undefined
const store = new Store((state: State) => {
  // A call that rings has put its own there.
  if (state.rings.length === 0) document.title = titleOf(state)
  render(pageView(state, app), root)
  keepFocus()
})
const app = new App(store)

addEventListener('focusin', ({ target }) => {
  focused = target as Element
  item = focused.closest('li')
  card = focused.closest('.card')
})
addEventListener('callsign-notice', event => {
  const { kind, text } = (event as CustomEvent<Notice>).detail
  store.say(kind, text)
})
addEventListener('hashchange', () => void app.onHashChange())
// A menu lies over the next one's buttons: it closes as menus do.
addEventListener('click', ({ target }) => closeMenus(menu => !menu.contains(target as Node)))
addEventListener('keydown', ({ key }) => {
  if (key === 'Escape') closeMenus(() => true)
})
// Seconds until another code may be asked for.
setInterval(() => store.state.stage === 'code' && store.update({}), 1_000)
root.replaceChildren()
await app.start()

function closeMenus(isMeant: (menu: HTMLDetailsElement) => boolean): void {
  for (const menu of document.querySelectorAll<HTMLDetailsElement>('details.menu[open]')) {
    if (!isMeant(menu)) continue
    // A keyboard user in it is not to be sent to the top of the page.
    if (menu.contains(document.activeElement)) menu.querySelector('summary')?.focus()
    menu.open = false
  }
}

/**
 * When the focused element is gone, focus moves to the first card: a new call's, or the code's. A screen reader says
 * its heading, and the next Tab is in it, not at the page's end. From such a card it moves on to a newer one. From an
 * item gone from its list, it moves to the list.
 */
function keepFocus(): void {
  const { activeElement } = document
  const isLost = focused?.isConnected === false && activeElement === document.body
  const list = item?.isConnected === false && card?.isConnected ? card : undefined
  const heading = (list ?? root).querySelector<HTMLElement>(list === undefined ? '.card h2' : 'h2')
  if (heading === null || heading === activeElement || !(isLost || activeElement === given)) return
  given = list === undefined ? heading : undefined
  heading.tabIndex = -1
  heading.focus({ preventScroll: true })
}
