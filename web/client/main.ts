/** The development client: a small calling app in a browser tab, for trying a server out and for reading. */

import { render } from 'lit-html'
import { App } from './app.ts'
import { playStreams } from './call-view.ts'
import { type State, Store } from './state.ts'
import { pageView, titleOf } from './view.ts'

const root = document.querySelector('main')!
const store = new Store((state: State) => {
  document.title = titleOf(state)
  render(pageView(state, app), root)
  playStreams(root, state.media, () => store.updateMedia({ isSoundOn: false }))
})
const app = new App(store)

addEventListener('hashchange', () => void app.onHashChange())
// A contact's menu lies over the next one's buttons: it closes as menus do.
addEventListener('click', ({ target }) => closeMenus(menu => !menu.contains(target as Node)))
addEventListener('keydown', ({ key }) => {
  if (key === 'Escape') closeMenus(() => true)
})
// The duration of a call is shown by the second.
setInterval(() => {
  if (store.state.call?.startedAtMs !== undefined || store.state.stage === 'code') store.update({})
}, 1_000)
root.replaceChildren()
await app.start()

function closeMenus(isMeant: (menu: HTMLDetailsElement) => boolean): void {
  for (const menu of document.querySelectorAll<HTMLDetailsElement>('details.more[open]')) {
    if (!isMeant(menu)) continue
    // Who is in it with the keyboard is not to be sent to the top of the page.
    if (menu.contains(document.activeElement)) menu.querySelector('summary')?.focus()
    menu.open = false
  }
}
