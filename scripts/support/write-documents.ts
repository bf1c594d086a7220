/**
 * A step of the build: the documents as the pages of `/docs`, and the texts that their search reads.
 */

import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DOCUMENTS_FOLDER } from '../../src/operations/console/documents.ts'
import { documentPage } from './documents/document-page.ts'
import { renderDocument } from './documents/render-document.ts'
import { shownDocuments } from './documents/shown-documents.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')

const { index, sections } = shownDocuments(ROOT)
const all = sections.flatMap(({ title, documents }) =>
  documents.map(document => ({ section: title, document })),
)
const rendered = [{ section: '', document: index }, ...all].map(({ section, document }) => ({
  section,
  document,
  content: renderDocument(document, ROOT),
}))

rmSync(DOCUMENTS_FOLDER, { recursive: true, force: true })
for (const { document, content } of rendered) {
  const path = join(DOCUMENTS_FOLDER, `${document.address}.html`)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, documentPage(document, content, sections))
}
const passages = rendered.flatMap(({ section, document: { address }, content: { title, passages } }) =>
  passages.map(({ anchor, heading, text }) => ({
    at: `${address}#${anchor}`,
    section,
    title,
    heading,
    text,
  })),
)
writeFileSync(join(DOCUMENTS_FOLDER, 'docs/search.json'), JSON.stringify(passages))
const pictures = rendered.flatMap(
  ({ content }) => content.html.match(/(?<= src="\/)docs\/images\/[^"]+/g) ?? [],
)
for (const picture of pictures) cpSync(join(ROOT, picture), join(DOCUMENTS_FOLDER, picture))
