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
// The duration of a call is shown by the second.
setInterval(() => {
  if (store.state.call?.startedAtMs !== undefined || store.state.stage === 'code') store.update({})
}, 1_000)
root.replaceChildren()
await app.start()
