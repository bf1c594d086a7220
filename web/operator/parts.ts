/** Shared by the views: answers that wait or failed, lists with a way to more, questions that take a second click. */

import { html, nothing, type TemplateResult } from 'lit-html'
import type { OperationName, Params } from '../../src/backend/server-link.ts'
import type { Answer, Page, ReplyOf } from './page.ts'

export type Content = TemplateResult | string | typeof nothing | readonly TemplateResult[]

/** The view of an answer's value; else that it waits, or why it failed. */
export function shown<Value>(answer: Answer<Value>, view: (value: Value) => Content): Content {
  switch (answer.kind) {
    case 'waiting':
      return html`<p class="soft" aria-busy="true">Loading…</p>`
    case 'failed':
      return html`<p class="bad">${answer.words}</p>`
    case 'there':
      return view(answer.value)
  }
}

/** The view of one thing, under a way back. It has a heading also while it waits, where the keyboard goes on. */
export function thing<Value>(
  back: TemplateResult,
  title: string,
  answer: Answer<Value>,
  view: (value: Value) => Content,
): TemplateResult {
  const heading = html`<section><h1 tabindex="-1">${title}</h1>${shown(answer, () => nothing)}</section>`
  return html`<p class="back">${back}</p>${answer.kind === 'there' ? view(answer.value) : heading}`
}

interface ListReply {
  readonly items: readonly unknown[]
  readonly nextCursor?: string
}
type ListName = { [Name in OperationName]: ReplyOf<Name> extends ListReply ? Name : never }[OperationName]
type ItemOf<Name extends ListName> = ReplyOf<Name>['items'][number]

/** The items of all pages that are shown, by `view`, and a button for the next page. */
export function listed<Name extends ListName>(
  page: Page,
  name: Name,
  params: Params,
  view: (items: readonly ItemOf<Name>[]) => Content,
): Content {
  const { count, more } = page.pagesOf(`${name} ${JSON.stringify(params)}`)
  const items: ItemOf<Name>[] = []
  let cursor: string | undefined
  for (let at = 0; at < count; at++) {
    const answer = page.reply(name, cursor === undefined ? params : { ...params, cursor })
    if (answer.kind !== 'there')
      return html`${at === 0 ? nothing : view(items)}${shown(answer, () => nothing)}`
    const reply = answer.value as ListReply
    items.push(...(reply.items as ItemOf<Name>[]))
    cursor = reply.nextCursor
    if (cursor === undefined) break
  }
  return html`${view(items)}${
    cursor === undefined
      ? nothing
      : html`<button type="button" class="more" @click=${more}>Show more</button>`
  }`
}

/** A button whose first click asks, and whose second acts. */
export function asking(page: Page, label: string, question: string, act: () => void): TemplateResult {
  const ask = (asked: string | undefined) => page.change(() => Object.assign(page, { asked }))
  if (page.asked !== question)
    return html`<button type="button" class="danger" ?disabled=${page.isBusy} @click=${() => ask(question)}>${label}</button>`
  return html`<span class="asking" role="group" aria-label=${question}><span>${question}</span>
    <button type="button" class="danger" ?disabled=${page.isBusy} @click=${act}>Yes, ${label.toLowerCase()}</button>
    <button type="button" @click=${() => ask(undefined)}>No</button></span>`
}

/** Facts with their names; those without a value are left out. */
export function facts(pairs: readonly (readonly [string, Content | undefined])[]): TemplateResult {
  return html`<dl class="facts">${pairs
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

export function section(heading: string, content: Content): TemplateResult {
  return html`<section><h2>${heading}</h2>${content}</section>`
}

export function personLink({
  userId,
  displayName,
}: {
  readonly userId: string
  readonly displayName: string
}) {
  return html`<a href="#person/${userId}">${displayName}</a>`
}

/** The text of a field of the form, without blanks around it. */
export function textIn(form: EventTarget | null, name: string): string {
  return String(new FormData(form as HTMLFormElement).get(name) ?? '').trim()
}
