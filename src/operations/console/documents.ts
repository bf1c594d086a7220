/**
 * `/docs`: the documents of the project as pages, which the build makes from their Markdown, with the texts that their
 * search reads. Development mode only.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { SignalError } from '../../errors.ts'
import type { HttpRoute } from '../../transport/route.ts'
import { PAGES_FOLDER } from '../page-files.ts'
import { pageRoute } from '../page-route.ts'

/** Where the build puts them: each file lies at its address, a page with `.html` behind it. */
export const DOCUMENTS_FOLDER = join(PAGES_FOLDER, 'documents')

export function documentRoutes(folder = DOCUMENTS_FOLDER): readonly HttpRoute[] {
  if (!existsSync(folder)) return [pageRoute('/docs', 'text/html; charset=utf-8', refuse)]
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).flatMap(name => {
    const mediaType = MEDIA_TYPES[extname(name)]
    if (mediaType === undefined) return []
    return pageRoute(`/${name.replace(/\.html$/, '')}`, mediaType, () => readFileSync(join(folder, name)))
  })
}

function refuse(): never {
  throw new SignalError('NOT_FOUND', 'the documents are not there: npm run build makes them')
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
}
