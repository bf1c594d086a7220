/** The log as it grows: the tree's right edge, its tiles, the checkpoints, and the check of all that. */

import { html, nothing, type TemplateResult } from 'lit-html'
import type { ConsoleState } from '../../src/operations/console/events.ts'
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
  const index = server?.log.index
  return section(
    'log',
    'The log',
    aside,
    html`${drawing}${index === undefined ? nothing : indexRow(index, treeSize)}${checkpoints(page)}${verifyView(page)}`,
  )
}

/** The index, by which lookups prove that they are complete. */
function indexRow(
  { entries, leaves, isHeld }: NonNullable<ConsoleState['log']['index']>,
  treeSize: number,
): TemplateResult {
  if (isHeld) {
    return html`<p class="notice bad">The index is held: something is wrong with it, and the line <code>index-held</code> in
      the server's log says what. Lookups come without its proofs.</p>`
  }
  if (treeSize + leaves === 0) return html`<p class="soft">Index: begins with the first entry</p>`
  const all = html`${countOf(entries)} of ${manyOf(treeSize, 'entry', 'entries')}`
  if (leaves === 0) return html`<p class="soft">Index: is being built, ${all}</p>`
  return html`<p class="soft"><a href="/index/checkpoint">Index</a>: ${manyOf(leaves, 'leaf', 'leaves')}, the newest over ${all}</p>`
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
