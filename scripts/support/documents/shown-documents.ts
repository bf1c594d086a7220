/**
 * The documents that a development server shows, their addresses and their order, which is the order of `docs/README.md`:
 * a `##` heading is a section, and each link in it a page. A page that is not listed there ends its folder's section.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

export interface ShownDocument {
  /** From the project's folder, such as `docs/start/first-call.md`. */
  readonly name: string
  /** Such as `/docs/start/first-call`. */
  readonly address: string
  /** As the index names it. */
  readonly label: string
  readonly text: string
}

export interface DocumentSection {
  readonly title: string
  readonly documents: readonly ShownDocument[]
}

export interface ShownDocuments {
  readonly index: ShownDocument
  readonly sections: readonly DocumentSection[]
}

const INDEX = 'docs/README.md'
/** Shown although they lie elsewhere. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'SECURITY.md': '/docs/security',
  'CHANGELOG.md': '/docs/changelog',
  'kotlin/README.md': '/docs/kotlin',
  'swift/README.md': '/docs/swift',
}

/** Where a file of the project is shown; undefined: it is not. */
export function addressOf(name: string): string | undefined {
  if (name === INDEX) return '/docs'
  const [, page] = /^docs\/(.+)\.md$/.exec(name) ?? []
  if (page !== undefined) return `/docs/${page}`
  return /^docs\/images\/[\w-]+\.png$/.test(name) ? `/${name}` : ELSEWHERE[name]
}

export function shownDocuments(root: string): ShownDocuments {
  const documentOf = (name: string, label?: string): ShownDocument => {
    const text = readFileSync(join(root, name), 'utf8')
    const [, title = name] = /^# (.+)$/m.exec(text) ?? []
    return { name, address: addressOf(name)!, label: label ?? title, text }
  }
  const index = documentOf(INDEX)
  const listed = sectionsOf(index.text)
  const names = new Set(listed.flatMap(({ links }) => links.map(({ name }) => name)))
  const others = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map(path => `docs/${path}`)
    .filter(name => name.endsWith('.md') && name !== INDEX && !names.has(name))
  const sections = listed.map(({ title, links }) => {
    const folders = new Set(links.map(({ name }) => posix.dirname(name)).filter(folder => folder !== 'docs'))
    const documents = links.map(({ name, label }) => documentOf(name, label))
    const unlisted = others.filter(name => folders.has(posix.dirname(name))).map(name => documentOf(name))
    return { title, documents: [...documents, ...unlisted] }
  })
  return { index, sections }
}

/** Sections of the index that link to documents. */
function sectionsOf(index: string) {
  return index
    .split(/^## /m)
    .slice(1)
    .map(section => {
      const [title = ''] = section.split('\n', 1)
      const links = Array.from(
        section.matchAll(/^- \[([^\]]+)\]\(([^)#]+\.md)\)/gm),
        ([, label, target]) => ({
          name: posix.join('docs', target!),
          label: label!,
        }),
      )
      return { title, links: links.filter(({ name }) => addressOf(name) !== undefined) }
    })
    .filter(({ links }) => links.length > 0)
}
