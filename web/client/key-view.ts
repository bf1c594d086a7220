/** The key log's verdict on this device's own key. */

import { html, nothing } from 'lit-html'
import { completenessWords } from '../shared/completeness.ts'
import type { State } from './state.ts'
import type { View } from './view-parts.ts'

export function keyView({ ownKey, devices }: State): View {
  switch (ownKey.kind) {
    case 'none':
      return nothing
    case 'checking':
      return html`<section class="card"><h2>Your key</h2><p class="quiet">Asking the key log …</p></section>`
    case 'clean':
      return html`<section class="card own-key"><h2>Your key</h2>
        <p><span class="good">Verified.</span> It is entry ${ownKey.index} of the key log, which
          has ${ownKey.treeSize} now, and no other is logged in its name. ${completenessWords(ownKey.proved)}</p>
        <details><summary>More</summary>
          <p>The private key was made by this browser and can’t be read out of it, not even by this page.
            This page has checked the log’s signature, the entry’s path to the tree’s root, and that the entry is yours.</p>
          <p class="mono hash" aria-label="Hash of the log entry">${devices.find(({ current }) => current)?.publicKeyHash}</p>
        </details></section>`
    case 'doubtful':
    case 'unchecked':
      return html`<section class="card own-key"><h2>Your key</h2>
        <p class=${ownKey.kind === 'doubtful' ? 'bad' : 'quiet'}>${ownKey.sentence}</p></section>`
  }
}
