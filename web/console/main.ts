/** The console of a development server, at `/dev`: outgoing messages and events inside the server, live. */

import { render } from 'lit-html'
import { follow } from './feed.ts'
import { pageView } from './page.ts'
import { initialState, type Page } from './state.ts'

const root = document.querySelector('main')!
root.replaceChildren()

let isDue = false
const page: Page = {
  state: initialState(Date.now()),
  change(act) {
    act(page.state)
    draw()
  },
}

/** However much changes, the page is drawn once in a frame. */
function draw(): void {
  if (isDue) return
  isDue = true
  requestAnimationFrame(() => {
    isDue = false
    render(pageView(page, document.documentElement.clientWidth), root)
  })
}

addEventListener('resize', draw)
draw()
follow(page)
