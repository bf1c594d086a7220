/**
 * `/docs/events`: messages over STOMP, for people, from `/asyncapi.json` of the same server. The published renderers
 * of AsyncAPI bring over 200 packages and need a looser content security policy; one document of known form needs neither.
 * A channel is at `#<channel>`, a message at `#<channel>/<message>`.
 */

import { html, nothing, render, type TemplateResult } from 'lit-html'
import {
  type Channel,
  type EventsDocument,
  type Message,
  readEventsDocument,
  type Schema,
} from './document.ts'
import { isShown, matching } from './filter.ts'
import { memberRows } from './schema-rows.ts'

interface PageState {
  readonly document?: EventsDocument
  /** Why there is none. */
  readonly trouble?: string
  readonly filter: string
  /** Ids of the messages with open details. */
  readonly open: ReadonlySet<string>
  /** The id of the message with the example copied last. */
  readonly copied?: string
}

let state: PageState = { filter: '', open: new Set() }
const main = document.querySelector('main')!
main.replaceChildren()

function update(change: Partial<PageState>): void {
  state = { ...state, ...change }
  render(page(state), main)
}

function page({ document, trouble }: PageState): TemplateResult {
  if (trouble !== undefined) return html`<p role="alert">The document can't be shown: ${trouble}</p>`
  if (document === undefined) return html`<p role="status">Loading…</p>`
  const channels = matching(document.channels, state.filter)
  return html`
    <header>
      <h1>${document.title} <small>${document.version}</small></h1>
      <p class="links">
        <a href="/docs">Documents</a> <a href="/docs/api">HTTP operations</a> <a href="/asyncapi.json">asyncapi.json</a> <a href="/dev">Console</a>
      </p>
      <p>${prose(document.description)}</p>
    </header>
    <div class="columns">
      ${contents(channels)}
      <div class="body">
        ${servers(document)} ${tools(channels)}
        ${GROUPS.map(([action, title]) =>
          group(
            title,
            channels.filter(each => each.action === action),
          ),
        )}
      </div>
    </div>
  `
}

const GROUPS = [
  ['send', 'The server sends'],
  ['receive', 'A device sends'],
] as const

function contents(channels: readonly Channel[]): TemplateResult {
  return html`
    <nav aria-label="Contents">
      <details ?open=${WIDE.matches}>
        <summary>Contents</summary>
        ${GROUPS.map(
          ([action, title]) => html`
            <h2>${title}</h2>
            <ul>
              ${channels.filter(each => each.action === action).map(contentsEntry)}
            </ul>
          `,
        )}
      </details>
    </nav>
  `
}

function contentsEntry({ id, address, messages, action }: Channel): TemplateResult {
  const names = messages.map(({ id, name }) => html`<li><a href="#${id}">${name}</a></li>`)
  return html`
    <li>
      <a href="#${id}"><code>${address}</code></a>
      ${action === 'send' ? html`<ul>${names}</ul>` : nothing}
    </li>
  `
}

function servers(document: EventsDocument): TemplateResult {
  return html`
    <section aria-label="Server">
      ${document.servers.map(
        ({ url, description, security }) => html`
          <h2><code>${url}</code></h2>
          <p>${prose(description)}.</p>
          ${security.map(text => html`<p>${prose(text)}.</p>`)}
        `,
      )}
    </section>
  `
}

function tools(channels: readonly Channel[]): TemplateResult {
  const messages = channels.flatMap(channel => channel.messages)
  const isAllOpen = messages.length > 0 && messages.every(({ id }) => state.open.has(id))
  const toggled = isAllOpen ? [] : messages.map(({ id }) => id)
  return html`
    <div class="tools" role="search">
      <label>
        Filter
        <input
          type="search"
          placeholder="call_ended, encryptedAESKey, …"
          autocomplete="off"
          spellcheck="false"
          .value=${state.filter}
          @input=${(event: InputEvent) => update({ filter: (event.target as HTMLInputElement).value })}
        />
      </label>
      <button type="button" @click=${() => update({ open: new Set(toggled) })}>
        ${isAllOpen ? 'Close all' : 'Open all'}
      </button>
      <span role="status">${messages.length} messages at ${channels.length} destinations</span>
    </div>
  `
}

function group(title: string, channels: readonly Channel[]): TemplateResult | typeof nothing {
  return channels.length === 0
    ? nothing
    : html`<h2 class="group">${title}</h2> ${channels.map(channelSection)}`
}

function channelSection(channel: Channel): TemplateResult {
  const { id, address, summary, description, parameters, messages } = channel
  return html`
    <section class="channel" id=${id} aria-labelledby="${id}-title">
      <h3 id="${id}-title">
        <span class="verb">${channel.action === 'send' ? 'SUBSCRIBE' : 'SEND'}</span>
        <code>${address}</code> ${linkTo(id)}
      </h3>
      <p>${prose(summary)}.</p>
      <p class="soft">${prose(description)}</p>
      ${parameters.map(each => html`<p class="soft"><code>{${each.name}}</code>: ${prose(each.description)}.</p>`)}
      ${messages.map(messageDetails)}
    </section>
  `
}

function messageDetails(message: Message): TemplateResult {
  const { id, name, summary, payload, headers, examples } = message
  return html`
    <details
      class="message"
      id=${id}
      .open=${state.open.has(id)}
      @toggle=${(event: Event) => noteOpen(id, (event.target as HTMLDetailsElement).open)}
    >
      <summary>
        <h4><code>${name}</code></h4>
        <span>${prose(summary)}</span>
      </summary>
      <div class="content">
        ${schemaTable(payload, 'Body')}
        ${examples.map(example => exampleBlock(message, JSON.stringify(example, null, 2)))}
        ${headers === undefined ? nothing : schemaTable(headers, 'Headers')}
        <p class="soft">${linkTo(id)}</p>
      </div>
    </details>
  `
}

function noteOpen(id: string, isOpen: boolean): void {
  if (state.open.has(id) === isOpen) return
  const others = [...state.open].filter(each => each !== id)
  update({ open: new Set(isOpen ? [...others, id] : others) })
}

function linkTo(id: string): TemplateResult {
  return html`<a class="link" href="#${id}">#${id}</a>`
}

function schemaTable(schema: Schema, title: string): TemplateResult {
  const rows = memberRows(schema)
  if (rows.length === 0) return html`<p>${title}: an object without members, or nothing.</p>`
  return html`
    <table>
      <caption>
        ${title}
      </caption>
      <thead>
        <tr>
          <th scope="col">Member</th>
          <th scope="col">What it is</th>
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          row => html`
            <tr>
              <th scope="row" class="depth-${Math.min(row.depth, DEPTH_MAX)}">
                <code>${row.name}</code>
                ${row.isRequired ? nothing : html`<small>optional</small>`}
              </th>
              <td>
                <span class="type">${row.type}</span>
                ${row.values.map(value => html` <code class="value">${value}</code>`)}
                ${row.bounds.map(text => html` <small>${text}</small>`)}
                ${row.description === '' ? nothing : html`<div>${prose(row.description)}</div>`}
              </td>
            </tr>
          `,
        )}
      </tbody>
    </table>
  `
}

function exampleBlock({ id, name }: Message, text: string): TemplateResult {
  return html`
    <figure>
      <figcaption>
        Example
        <button type="button" aria-label="Copy the example of ${name}" @click=${() => copy(id, text)}>
          ${state.copied === id ? 'Copied' : 'Copy'}
        </button>
      </figcaption>
      <pre tabindex="0"><code>${coloured(text)}</code></pre>
    </figure>
  `
}

/** Names of members apart from what they are. */
function coloured(json: string): readonly unknown[] {
  return json
    .split(/("(?:[^"\\]|\\.)*"(?=:))/)
    .map((part, index) => (index % 2 === 1 ? html`<span class="name">${part}</span>` : part))
}

async function copy(id: string, text: string): Promise<void> {
  await navigator.clipboard.writeText(text)
  update({ copied: id })
}

/** Text with `code` in it. */
function prose(text: string): readonly unknown[] {
  return text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))
}

/** Shows what the address names: opens it, and takes a filter back that hides it. */
function followLink(): void {
  const id = decodeURIComponent(location.hash.slice(1))
  if (id === '' || state.document === undefined) return
  const filter = isShown(state.document.channels, state.filter, id) ? state.filter : ''
  update({ filter, open: new Set([...state.open, id]) })
  const target = document.getElementById(id)
  target?.scrollIntoView()
  target?.querySelector<HTMLElement>('summary, .link')?.focus({ preventScroll: true })
}

async function load(): Promise<void> {
  try {
    const answer = await fetch('/asyncapi.json')
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`)
    update({ document: readEventsDocument(await answer.json()) })
    followLink()
  } catch (error) {
    update({ trouble: (error as Error).message })
  }
}

/** Where the table of contents has a column of its own. */
const WIDE = matchMedia('(min-width: 60rem)')
const DEPTH_MAX = 3

WIDE.addEventListener('change', () => update({}))
addEventListener('hashchange', followLink)
update({})
void load()
