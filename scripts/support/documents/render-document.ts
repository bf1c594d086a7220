/**
 * A document's Markdown as HTML of a page, with what the page and the search need beside it. Headings have the anchors
 * that hosts of repositories give them, so that one link is good there and here.
 */

import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { marked, Parser, Renderer, type Token, type Tokens } from 'marked'
import { addressOf, type ShownDocument } from './shown-documents.ts'

export interface Heading {
  readonly depth: number
  readonly anchor: string
  /** HTML of its text. */
  readonly html: string
}

/** A heading and the text to the next one. */
export interface Passage {
  readonly anchor: string
  readonly heading: string
  readonly text: string
}

export interface RenderedDocument {
  /** Plain text. */
  readonly title: string
  readonly html: string
  readonly headings: readonly Heading[]
  readonly passages: readonly Passage[]
}

/** The anchors of a page's headings, in their order: a second heading of the same text gets `-1`. */
export function anchorsOf(headings: readonly string[]): readonly string[] {
  const seen = new Map<string, number>()
  return headings.map(heading => {
    const slug = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  })
}

export function renderDocument(document: ShownDocument, root: string): RenderedDocument {
  const tokens = marked.lexer(document.text)
  const found = tokens.filter((token): token is Tokens.Heading => token.type === 'heading')
  const anchors = anchorsOf(found.map(({ text }) => text))
  const renderer = new PageRenderer(
    document,
    root,
    new Map(found.map((heading, at) => [heading, anchors[at]!])),
  )
  const html = (some: Token[]) => Parser.parse(some, { renderer })
  const headings = found.map(({ depth, tokens }, at) => {
    const inline = Parser.parseInline(tokens, { renderer })
    return { depth, anchor: anchors[at]!, html: inline.replaceAll(/<\/?a\b[^>]*>/g, '') }
  })
  return {
    title: headings[0] === undefined ? document.label : plainText(headings[0].html),
    html: html(tokens),
    headings,
    passages: headings.map(({ anchor, html: heading }, at) => {
      const next = found[at + 1]
      const from = tokens.indexOf(found[at]!) + 1
      const some = tokens.slice(from, next === undefined ? undefined : tokens.indexOf(next))
      return { anchor, heading: plainText(heading), text: plainText(html(some)) }
    }),
  }
}

class PageRenderer extends Renderer {
  readonly #document: ShownDocument
  readonly #root: string
  readonly #anchors: ReadonlyMap<Tokens.Heading, string>

  constructor(document: ShownDocument, root: string, anchors: ReadonlyMap<Tokens.Heading, string>) {
    super()
    this.#document = document
    this.#root = root
    this.#anchors = anchors
  }

  override heading(token: Tokens.Heading): string {
    const { depth, tokens } = token
    const anchor = this.#anchors.get(token) ?? ''
    const text = this.parser.parseInline(tokens)
    const link = `<a class="anchor" href="#${anchor}" aria-label="Link to ${plainText(text)}">#</a>`
    return `<h${depth} id="${anchor}">${text}${depth === 1 ? '' : ` ${link}`}</h${depth}>\n`
  }

  override code({ text, lang = '' }: Tokens.Code): string {
    const [language = ''] = lang.split(' ')
    const code = `<code data-language="${escapeHtml(language)}">${escapeHtml(text)}\n</code>`
    return `<div class="block"><pre>${code}</pre></div>\n`
  }

  override link({ href, tokens }: Tokens.Link): string {
    return linkOf(this.#document.name, href, this.parser.parseInline(tokens))
  }

  override image({ href, text }: Tokens.Image): string {
    const name = posix.join(posix.dirname(this.#document.name), href)
    const picture = readFileSync(join(this.#root, name))
    // The first chunk of a PNG file has both numbers, so that nothing moves when the picture comes.
    const size = `width="${picture.readUInt32BE(16)}" height="${picture.readUInt32BE(20)}"`
    return `<img src="${addressOf(name) ?? ''}" alt="${escapeHtml(text)}" ${size} loading="lazy">`
  }

  override table(token: Tokens.Table): string {
    // A corner without a text is no heading.
    const table = super.table(token).replaceAll(/<th[^>]*><\/th>/g, '<td></td>')
    return `<div class="wide">${table}</div>\n`
  }

  override html({ text }: Tokens.HTML | Tokens.Tag): string {
    return text.startsWith('<!--') ? '' : text
  }
}

/** A link between documents leads to the page here. Files of the project that are not shown are named. */
function linkOf(from: string, href: string, text: string): string {
  if (/^[a-z]+:/.test(href)) return `<a href="${escapeHtml(href)}">${text}</a>`
  const [path = '', anchor] = href.split('#')
  const hash = anchor === undefined ? '' : `#${anchor}`
  if (path === '') return `<a href="${hash}">${text}</a>`
  const name = posix.join(posix.dirname(from), path)
  const address = addressOf(name)
  if (address !== undefined) return `<a href="${address}${hash}">${text}</a>`
  return plainText(text).includes(posix.basename(name)) ? text : `${text} (<code>${escapeHtml(name)}</code>)`
}

function plainText(html: string): string {
  return html
    .replaceAll(/<a class="anchor"[^>]*>#<\/a>/g, '')
    .replaceAll(/<\/(?:p|li|td|th|tr|h\d|pre|div)>/g, ' ')
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&(lt|gt|quot|amp);/g, (_, name: string) => CHARACTERS[name]!)
    .replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
    .replaceAll(/\s+/g, ' ')
    .trim()
}

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}

const CHARACTERS: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', amp: '&' }
