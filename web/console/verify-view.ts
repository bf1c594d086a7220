/** The form that checks the log in the browser, and what each step came to. */

import { html, nothing, type TemplateResult } from 'lit-html'
import type { Identity } from '../../src/client/client.ts'
import { countOf } from '../shared/figures.ts'
import { forgetCheckpoint, rememberCheckpoint, rememberedCheckpoint } from './remembered.ts'
import { nameOf, type Page } from './state.ts'
import { type Step, verifyLog } from './verification.ts'

export function verifyView(page: Page): TemplateResult {
  const { verify, server } = page.state
  const devices = server?.devices ?? []
  return html`<form class="verify" @submit=${(event: SubmitEvent) => submit(page, event)}>
      <label>Leaf <input name="leaf" inputmode="numeric" pattern="[0-9]*" size="8" autocomplete="off" placeholder="newest"></label>
      <label class="wide">Device <input name="device" pattern="[0-9]+_[0-9]+" size="24" autocomplete="off" list="owners"
        placeholder="user_device, or any connected"></label>
      <datalist id="owners">${devices.map(
        ({ userId, deviceId, displayName }) =>
          html`<option value="${userId}_${deviceId}">${displayName}</option>`,
      )}</datalist>
      <button class="main" ?disabled=${verify.isRunning || server === undefined}>Verify</button>
    </form>
    ${rememberedLine(page)}
    <div role="status" aria-label="verification">
      <ol class="steps" data-runs=${verify.runs}>${verify.steps.map(step => stepRow(page, step))}</ol>
    </div>`
}

function stepRow(page: Page, { name, verdict, detail, evidence }: Step): TemplateResult {
  return html`<li class=${verdict}><span class="verdict" aria-label=${WORDS[verdict]}>${MARKS[verdict]}</span>
    <span class="mono">${name}</span> <span>${withNames(page, detail)}</span>
    ${
      evidence === undefined
        ? nothing
        : html`<details><summary>Two signed notes that contradict each other</summary>
      <pre tabindex="0">${evidence.join('\n')}</pre></details>`
    }</li>`
}

function rememberedLine(page: Page): TemplateResult {
  const { server, verify } = page.state
  const remembered =
    verify.remembered ?? (server === undefined ? undefined : rememberedCheckpoint(server.log.vkey))
  if (remembered === undefined) {
    return html`<p class="soft">In this browser, with <code>@callsign/sdk/client</code>: signature, growth, an entry's way to
      the root, and whose key it is.</p>`
  }
  const forget = () =>
    page.change(({ server, verify }) => {
      forgetCheckpoint(server!.log.vkey)
      verify.remembered = undefined
      verify.steps = []
    })
  return html`<p class="soft">This page remembers tree size ${countOf(remembered.treeSize)},
    root <code>${remembered.rootHash.slice(0, 12)}…</code> <button type="button" class="small" @click=${forget}>Forget it</button></p>`
}

async function submit(page: Page, event: SubmitEvent): Promise<void> {
  event.preventDefault()
  const { server } = page.state
  if (server === undefined) return
  const fields = new FormData(event.target as HTMLFormElement)
  const { vkey, vrfPublicKey, index } = server.log
  const keys = { vkey, vrfPublicKey, ...(index && { indexVkey: index.vkey }) }
  const [leaf, device] = [String(fields.get('leaf')).trim(), String(fields.get('device')).trim()]
  page.change(({ verify }) => Object.assign(verify, { isRunning: true, steps: [], tiles: new Set() }))
  const checkpoint = await verifyLog({
    keys,
    remembered: rememberedCheckpoint(keys.vkey),
    leaf: leaf === '' ? undefined : Number(leaf),
    owners: device === '' ? server.devices.slice(0, OWNERS_MAX) : [identityOf(device)],
    isOwnerNamed: device !== '',
    onStep: step => page.change(({ verify }) => Object.assign(verify, { steps: [...verify.steps, step] })),
    onTile: path =>
      page.change(({ verify }) => Object.assign(verify, { tiles: new Set([...verify.tiles, path]) })),
  })
  if (checkpoint !== undefined) rememberCheckpoint(keys.vkey, checkpoint)
  page.change(({ verify }) => {
    verify.isRunning = false
    verify.runs += 1
    verify.remembered = checkpoint ?? verify.remembered
  })
}

function identityOf(device: string): Identity {
  const [userId = '', deviceId = ''] = device.split('_')
  return { userId, deviceId }
}

/** Adds the name behind each id that the page knows. */
function withNames({ state }: Page, detail: string): string {
  return detail.replace(/\b(\d+)_\d+/, (ids, userId) =>
    state.names.has(userId) ? `${ids} (${nameOf(state, userId)})` : ids,
  )
}

const MARKS = { holds: '✓', fails: '✗', open: '–' } as const
const WORDS = { holds: 'holds:', fails: 'does not hold:', open: 'not checked:' } as const
/** Each takes a few milliseconds to try. */
const OWNERS_MAX = 64
