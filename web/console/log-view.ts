/** The log as it grows: the tree's right edge, its tiles, the checkpoints, and the check of all that. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { countOf, manyOf, timeOf } from '../shared/figures.ts'
import { KeyedList } from './keyed-list.ts'
import { command, empty, section } from './parts.ts'
import type { CheckpointFact, Page } from './state.ts'
import { tilesDrawing } from './tiles-drawing.ts'
import { treeDrawing } from './tree-drawing.ts'
import { verifyView } from './verify-view.ts'

const list = new KeyedList<CheckpointFact>('ol', 'checkpoints', ({ sequence }) => sequence)

export function logView(page: Page, width: number): TemplateResult {
  const { server, verify } = page.state
  const treeSize = treeSizeOf(page)
  const aside = server === undefined ? nothing : html`<code>${server.log.origin}</code>`
  const drawing =
    treeSize === 0
      ? emptyLog(page)
      : html`<p class="size"><strong>${countOf(treeSize)}</strong> ${treeSize === 1 ? 'entry' : 'entries'}</p>
        ${treeDrawing(treeSize, width)}
        ${tilesDrawing(treeSize, verify.tiles)}`
  return section('log', 'The log', aside, html`${drawing}${checkpoints(page)}${verifyView(page)}`)
}

/** The feed may be ahead of the state, and the other way round. */
function treeSizeOf({ state }: Page): number {
  return Math.max(state.server?.log.treeSize ?? 0, state.checkpoints[0]?.treeSize ?? 0)
}

function checkpoints({ state }: Page): TemplateResult | typeof nothing {
  const shown = state.checkpoints.slice(0, SHOWN)
  if (shown.length === 0) return nothing
  return html`${list.show(shown, checkpoint => {
    const older = state.checkpoints[state.checkpoints.indexOf(checkpoint) + 1]
    const grown = older === undefined ? 0 : checkpoint.treeSize - older.treeSize
    return html`<span class="soft">${timeOf(checkpoint.atMs)}</span> <a href="/checkpoint">checkpoint</a>
      <span class="number">${countOf(checkpoint.treeSize)}</span>
      <span class="good">${grown > 0 ? `+${manyOf(grown, 'leaf', 'leaves')}` : nothing}</span>
      <code class="soft">${checkpoint.rootHash.slice(0, 16)}…</code>`
  })}`
}

function emptyLog(page: Page): TemplateResult {
  return empty(html`<p>The log is empty. Each key that is registered becomes an entry: with the
    <a href="/dev/client">browser client</a>, or with</p>
    ${command(page, 'node dist/scripts/register.js --user 1 --device 1')}`)
}

const SHOWN = 5
