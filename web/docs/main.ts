/**
 * `/docs`: what the documents' pages do beyond showing text. Search reads the texts of all documents when its field is first
 * focused; blocks of code can be copied.
 */

import MiniSearch from 'minisearch'

interface Passage {
  /** Address and anchor. */
  readonly at: string
  /** Of the index; empty for the index itself. */
  readonly section: string
  readonly title: string
  readonly heading: string
  readonly text: string
}

const RESULTS_MAX = 12
const EXCERPT_CHARS = 150

const field = byId<HTMLInputElement>('search')
const list = byId<HTMLUListElement>('results')
const found = byId<HTMLParagraphElement>('found')

function byId<E extends HTMLElement>(id: string): E {
  const element = document.getElementById(id)
  if (element === null) throw new Error(`the page has no #${id}`)
  return element as E
}

let reading: Promise<(words: string) => readonly Passage[]> | undefined

/** The search over all documents, which are read once. */
function openSearch(): Promise<(words: string) => readonly Passage[]> {
  reading ??= readDocuments().catch(error => {
    reading = undefined
    throw error
  })
  return reading
}

async function readDocuments(): Promise<(words: string) => readonly Passage[]> {
  const answer = await fetch('/docs/search.json')
  if (!answer.ok) throw new Error(`search.json: ${answer.status}`)
  const passages = (await answer.json()) as readonly Passage[]
  const index = new MiniSearch<Passage>({ idField: 'at', fields: ['title', 'heading', 'text'] })
  index.addAll(passages)
  const byPlace = new Map(passages.map(passage => [passage.at, passage]))
  const options = {
    boost: { title: 2, heading: 4 },
    prefix: true,
    fuzzy: (word: string) => (word.length > 4 ? 0.2 : 0),
  }
  return words =>
    index
      .search(words, { ...options, combineWith: 'AND' })
      .slice(0, RESULTS_MAX)
      .map(({ id }) => byPlace.get(id)!)
}

async function search(): Promise<void> {
  const words = field.value.trim()
  if (words === '') return close()
  try {
    const find = await openSearch()
    // A later letter has begun another search.
    if (field.value.trim() === words) show(find(words), words)
  } catch {
    found.textContent = 'The search did not load.'
  }
}

function show(passages: readonly Passage[], words: string): void {
  list.replaceChildren(...passages.map((passage, at) => optionOf(passage, at, words)))
  list.hidden = passages.length === 0
  found.textContent = passages.length === 0 ? 'Nothing found' : `${passages.length} found`
  field.setAttribute('aria-expanded', String(passages.length > 0))
  choose(passages.length > 0 ? 0 : -1)
}

function optionOf(
  { at, section, title, heading, text }: Passage,
  index: number,
  words: string,
): HTMLLIElement {
  const option = document.createElement('li')
  option.id = `result-${index}`
  option.role = 'option'
  option.dataset.at = at
  const place = document.createElement('strong')
  const places = [section, title, heading === title ? '' : heading].filter(text => text !== '')
  place.textContent = places.join(' › ')
  const excerpt = document.createElement('small')
  excerpt.textContent = excerptOf(text, words)
  option.append(place, excerpt)
  option.addEventListener('pointermove', () => choose(index))
  // The field keeps the focus, which closes the list when it goes.
  option.addEventListener('pointerdown', event => event.preventDefault())
  option.addEventListener('click', () => goTo(option))
  return option
}

/** The text around the first of the words that it has. */
function excerptOf(text: string, words: string): string {
  const lower = text.toLowerCase()
  const places = words
    .toLowerCase()
    .split(/\s+/)
    .map(word => lower.indexOf(word))
    .filter(place => place >= 0)
  const from = places.length === 0 ? 0 : Math.max(0, Math.min(...places) - EXCERPT_CHARS / 3)
  const start = from === 0 ? 0 : text.indexOf(' ', from) + 1
  const end = start + EXCERPT_CHARS
  return `${start > 0 ? '… ' : ''}${text.slice(start, end)}${end < text.length ? ' …' : ''}`
}

let chosen = -1

function choose(index: number): void {
  chosen = index
  for (const [at, option] of Array.from(list.children).entries()) {
    option.ariaSelected = String(at === index)
    if (at === index) option.scrollIntoView({ block: 'nearest' })
  }
  if (index < 0) field.removeAttribute('aria-activedescendant')
  else field.setAttribute('aria-activedescendant', `result-${index}`)
}

function close(): void {
  list.hidden = true
  list.replaceChildren()
  found.textContent = ''
  field.setAttribute('aria-expanded', 'false')
  choose(-1)
}

function goTo(option: Element | undefined): void {
  if (!(option instanceof HTMLElement)) return
  close()
  field.blur()
  location.href = option.dataset.at ?? ''
}

function onKey(event: KeyboardEvent): void {
  const count = list.children.length
  const keys: Readonly<Record<string, () => void>> = {
    ArrowDown: () => choose((chosen + 1) % count),
    ArrowUp: () => choose((chosen + count - 1) % count),
    Enter: () => goTo(list.children[chosen]),
  }
  if (event.key === 'Escape') close()
  else if (count > 0 && event.key in keys) {
    event.preventDefault()
    keys[event.key]?.()
  }
}

field.addEventListener('focus', () => void openSearch().catch(() => undefined))
field.addEventListener('input', () => void search())
field.addEventListener('keydown', onKey)
field.addEventListener('blur', close)
document.addEventListener('keydown', event => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return
  if (event.target instanceof HTMLElement && event.target.matches('input, textarea, select')) return
  event.preventDefault()
  field.focus()
  field.select()
})

/** A block of commands without its prompts and what they print. */
function codeToCopy(code: HTMLElement): string {
  const text = code.textContent ?? ''
  if (code.dataset.language !== 'console' || !/^\$ /m.test(text)) return text
  const lines = text.split('\n')
  // A here-document or a quoted text goes on without a prompt: all of it is typed.
  if (/<<|'$/m.test(text)) return lines.map(line => line.replace(/^[$>] /, '')).join('\n')
  const typed = lines.filter((line, at) => line.startsWith('$ ') || lines[at - 1]?.endsWith('\\'))
  return `${typed.map(line => line.replace(/^[$>] /, '')).join('\n')}\n`
}

const said = document.createElement('p')
said.role = 'status'
said.className = 'said'
document.body.append(said)

function addCopyButton(block: Element): void {
  const code = block.querySelector('code')
  if (code === null) return
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = 'Copy'
  button.ariaLabel = 'Copy this block'
  button.addEventListener('click', async () => {
    const isCopied = await navigator.clipboard?.writeText(codeToCopy(code)).then(
      () => true,
      () => false,
    )
    said.textContent = isCopied ? 'Copied' : 'This browser does not let the page copy: select the text.'
    button.textContent = isCopied ? 'Copied' : 'Copy'
    setTimeout(() => {
      button.textContent = 'Copy'
      said.textContent = ''
    }, 2_000)
  })
  block.append(button)
}

/** The keyboard reaches blocks that scroll sideways. */
function markScrolling(): void {
  for (const element of document.querySelectorAll<HTMLElement>('pre, .wide')) {
    if (element.scrollWidth > element.clientWidth) element.tabIndex = 0
    else element.removeAttribute('tabindex')
  }
}

for (const block of document.querySelectorAll('.block')) addCopyButton(block)
markScrolling()
addEventListener('resize', markScrolling)

const sections = byId('sections')
const current = sections.querySelector<HTMLElement>('[aria-current]')
if (current !== null) sections.scrollTop = current.offsetTop - sections.clientHeight / 2
