/** Shared by several views of the page: sections, buttons that copy, rows that open. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { countOf } from '../shared/figures.ts'
import { isOpen, type Page } from './state.ts'

export type Content = TemplateResult | HTMLElement | string | typeof nothing | readonly TemplateResult[]

/** A section with its heading; `aside` stands beside the heading. */
export function section(id: string, heading: string, aside: Content, content: Content): TemplateResult {
  return html`<section id=${id} aria-labelledby="${id}-heading">
    <header><h2 id="${id}-heading" tabindex="-1">${heading}</h2><div class="aside">${aside}</div></header>
    ${content}
  </section>`
}

/** Shown where there is nothing yet: how to fill it. */
export function empty(content: TemplateResult): TemplateResult {
  return html`<div class="empty">${content}</div>`
}

/** A command to copy and run. */
export function command(page: Page, text: string): TemplateResult {
  return html`<div class="command"><code>${text}</code>${copyButton(page, `command ${text}`, text, 'Copy')}</div>`
}

/** Copies `text`; `label` is what the button shows, `name` what it is called where that is not enough. */
export function copyButton(
  page: Page,
  key: string,
  text: string,
  label: Content,
  name?: string,
): TemplateResult {
  const isCopied = page.state.copied === key
  return html`<button type="button" class="copy" aria-label=${name ?? nothing} data-copied=${isCopied ? '' : nothing}
    @click=${() => copy(page, key, text)}>${label}<span class="hint" data-hint=${isCopied ? 'copied' : 'copy'} aria-hidden="true"></span></button>`
}

/** A row that opens and closes; `summary` is on the button, `onOpen` is called before its content is requested. */
export function opening(
  page: Page,
  key: string,
  usually: boolean,
  summary: Content,
  content: () => Content,
  onOpen: () => void = () => undefined,
): TemplateResult {
  const isOpened = isOpen(page.state, key, usually)
  const turn = () => {
    if (!isOpened) onOpen()
    page.change(state => state.opened.set(key, !isOpened))
  }
  return html`<button type="button" class="opening" aria-expanded=${isOpened ? 'true' : 'false'} @click=${turn}>${summary}</button>
    ${isOpened ? html`<div class="opened">${content()}</div>` : nothing}`
}

/** The first of a list, and how to see the rest. */
export function shownOf<Item>(page: Page, list: string, items: readonly Item[], usual: number) {
  const { inFull } = page.state
  const isFull = inFull.has(list)
  const turn = () => page.change(() => (isFull ? inFull.delete(list) : inFull.add(list)))
  const label = isFull ? `Show only ${usual}` : `Show ${countOf(items.length - usual)} more`
  const more =
    items.length > usual ? html`<button type="button" class="more" @click=${turn}>${label}</button>` : nothing
  return { shown: isFull ? items : items.slice(0, usual), more }
}

async function copy(page: Page, key: string, text: string): Promise<void> {
  // The clipboard is there on this machine's own address and with TLS, not for a phone on the same network.
  const isCopied = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  )
  page.change(state => {
    state.copied = isCopied ? key : undefined
    state.announcement = isCopied ? 'copied' : 'this browser does not let the page copy'
  })
}
