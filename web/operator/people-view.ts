/** Finds people by an id, the company's own id, or an address, whichever a text may be. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { CallsignServerError } from '../../src/backend/callsign-server-error.ts'
import type { ServerLink } from '../../src/backend/server-link.ts'
import type { Page, ReplyOf } from './page.ts'
import { listed, shown, textIn } from './parts.ts'

type Person = ReplyOf<'GET users/{ref}'>

export function peopleView(page: Page): TemplateResult {
  const [text = ''] = page.sought
  return html`<section><h1 tabindex="-1">People</h1>
    <form class="search" role="search" @submit=${(event: SubmitEvent) => seek(page, event)}>
      <label>User id, your own id, mail address or phone number
        <input type="search" name="text" autocomplete="off" spellcheck="false" maxlength="512" required .value=${text}></label>
      <button class="main">Find</button>
    </form>
    ${
      text === ''
        ? nothing
        : shown(
            page.kept(`find ${text}`, link => find(link, text)),
            people => foundBy(text, people),
          )
    }
    </section>
    <section><h2>All people</h2>${listed(page, 'GET users', {}, people => peopleList(people, 'No one has an account yet.'))}</section>`
}

function foundBy(text: string, people: readonly Person[]): TemplateResult {
  return html`<h2>By “${text}”</h2>${peopleList(people, 'No one was found.')}`
}

function seek(page: Page, event: SubmitEvent): void {
  event.preventDefault()
  const text = textIn(event.target, 'text')
  page.change(() => Object.assign(page, { sought: text === '' ? [] : [text], said: undefined }))
}

/** Everybody whom the text may name. */
async function find(link: ServerLink, text: string): Promise<readonly Person[]> {
  const byRef = async (ref: string) => [await link.ask('GET users/{ref}', { params: { ref } })]
  const byAddress = async (params: Address) => (await link.ask('GET users', { params })).items
  const asked = [
    byRef(`ext:${text}`),
    ...(/^[0-9]{1,20}$/.test(text) ? [byRef(`id:${text}`)] : []),
    ...(text.includes('@') ? [byAddress({ email: text })] : []),
    ...(/^\+[0-9 ().-]{5,}$/.test(text) ? [byAddress({ phone: text })] : []),
  ]
  const found = (await Promise.all(asked.map(orNobody))).flat()
  return [...new Map(found.map(person => [person.userId, person])).values()]
}

type Address = { readonly email: string } | { readonly phone: string }

/** An empty list where the text names no user, or can't be such a name. */
function orNobody(people: Promise<readonly Person[]>): Promise<readonly Person[]> {
  return people.catch(error => {
    const isNobody = error instanceof CallsignServerError && NOBODY.includes(error.code)
    if (!isNobody) throw error
    return []
  })
}

const NOBODY = ['USER_NOT_FOUND', 'VALIDATION_FAILED']

function peopleList(people: readonly Person[], empty: string): TemplateResult {
  if (people.length === 0) return html`<p class="soft">${empty}</p>`
  return html`<ol class="rows">${people.map(
    ({ userId, displayName, externalId, state }) => html`<li><a class="row" href="#person/${userId}">
      <span class="what">${displayName}</span>
      <span class="whom mono">${externalId ?? userId}</span>
      ${state === 'active' ? nothing : html`<span class="badge ${state}">${state}</span>`}</a></li>`,
  )}</ol>`
}
