/** The console of a development server, at `/dev`: outgoing messages and events inside the server, live. */

import { render } from 'lit-html'
import { follow } from './feed.ts'
import { pageView } from './page.ts'
import { initialState, type Page } from './state.ts'

const root = document.querySelector('main')!

let isDue = false
let isDrawn = false
const page: Page = {
  state: initialState(Date.now()),
  change(act) {
    act(page.state)
    draw()
  },
}

/** However much changes, the page is drawn once in a frame; not before the server has answered, as empty cards would then jump. */
function draw(): void {
  if (isDue || page.state.link === 'connecting') return
  isDue = true
  requestAnimationFrame(() => {
    isDue = false
    if (!isDrawn) root.replaceChildren()
    isDrawn = true
    render(pageView(page, document.documentElement.clientWidth), root)
  })
}

addEventListener('resize', draw)
follow(page)
