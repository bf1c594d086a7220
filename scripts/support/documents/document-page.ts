/** The page around a document: sections, search, contents of the page, and the pages before and after it. */

import { escapeHtml, type RenderedDocument } from './render-document.ts'
import type { DocumentSection, ShownDocument } from './shown-documents.ts'

export function documentPage(
  document: ShownDocument,
  { title, html, headings }: RenderedDocument,
  sections: readonly DocumentSection[],
): string {
  const text = escapeHtml(title)
  const contents = contentsOf(headings)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${text} – Callsign</title>
<link rel="icon" type="image/svg+xml" href="${PAGES}/icon.svg">
<link rel="stylesheet" href="${PAGES}/base.css">
<link rel="stylesheet" href="${PAGES}/docs/style.css">
<script type="module" src="${PAGES}/docs/main.js"></script>
</head>
<body>
<a class="skip" href="#document">Skip to the document</a>
<header>
<button type="button" class="menu" popovertarget="sections">Documents</button>
${contents === '' ? '' : CONTENTS_BUTTON}<a class="brand" href="/docs">Callsign</a>
<search>
<input type="search" id="search" role="combobox" aria-label="Search the documents" placeholder="Search  ( / )" autocomplete="off" spellcheck="false" aria-expanded="false" aria-controls="results" aria-autocomplete="list">
<ul id="results" role="listbox" aria-label="Found" hidden></ul>
<p id="found" role="status"></p>
</search>
<nav class="elsewhere" aria-label="Elsewhere"><a href="/docs/api">API</a> <a href="/docs/events">Events</a> <a href="/dev">Console</a></nav>
</header>
<div class="columns">
<nav class="sections" id="sections" aria-label="Documents" popover>
${sections.map(section => sectionOf(section, document)).join('')}</nav>
<main id="document" tabindex="-1">
<article>
${html}</article>
${neighboursOf(document, sections)}</main>
${contents}</div>
</body>
</html>
`
}

function sectionOf({ title, documents }: DocumentSection, shown: ShownDocument): string {
  const items = documents.map(({ address, label }) => {
    const current = address === shown.address ? ' aria-current="page"' : ''
    return `<li><a href="${address}"${current}>${escapeHtml(label)}</a></li>\n`
  })
  return `<h2>${escapeHtml(title)}</h2>\n<ul>\n${items.join('')}</ul>\n`
}

function neighboursOf(shown: ShownDocument, sections: readonly DocumentSection[]): string {
  const all = sections.flatMap(({ documents }) => documents)
  const at = all.findIndex(({ address }) => address === shown.address)
  const linkTo = (document: ShownDocument | undefined, rel: string, word: string) =>
    document === undefined
      ? ''
      : `<a rel="${rel}" href="${document.address}"><small>${word}</small> ${escapeHtml(document.label)}</a>\n`
  const links = linkTo(all[at - 1], 'prev', 'Previous') + linkTo(all[at + 1], 'next', 'Next')
  return `<nav class="neighbours" aria-label="Previous and next">\n${links}</nav>\n`
}

function contentsOf(headings: RenderedDocument['headings']): string {
  const items = headings
    .filter(({ depth }) => depth === 2 || depth === 3)
    .map(({ depth, anchor, html }) => `<li class="depth-${depth}"><a href="#${anchor}">${html}</a></li>\n`)
  if (items.length < 2) return ''
  return `<nav class="contents" id="contents" aria-label="On this page" popover>\n<h2>On this page</h2>\n<ul>\n${items.join('')}</ul>\n</nav>\n`
}

const CONTENTS_BUTTON =
  '<button type="button" class="menu of-page" popovertarget="contents">On this page</button>\n'
/** The modules and style sheets of a development server's pages. */
const PAGES = '/dev/pages'
