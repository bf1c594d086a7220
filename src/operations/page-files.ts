/** The pages of the server and what they load, as the build has bundled them. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { HttpRoute } from '../transport/route.ts'
import { pageRoute } from './page-route.ts'

/** The folder of the compiled project. */
export const BUILT = join(import.meta.dirname, '..', '..')
/** Where the build puts pages: a folder for each surface. */
export const PAGES_FOLDER = join(BUILT, 'pages')

/** Files that the pages of one surface may load, under its own prefix. */
export interface PageFiles {
  /** Such as `/dev/pages`. */
  readonly prefix: string
  readonly surface: 'dev' | 'operator'
  /** The pages that a service worker among the files may have. */
  readonly workers?: Readonly<Record<string, string>>
}

export interface Shell {
  readonly title: string
  /** The folder of `web/` with its `main.js` and `style.css`. */
  readonly folder: string
  /** Facts that the page begins with, for its script. */
  readonly facts?: object
}

/** Without a build there are none. */
export function fileRoutes(
  { prefix, surface, workers = {} }: PageFiles,
  built: string,
): readonly HttpRoute[] {
  const folder = join(built, 'pages', surface)
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).flatMap(name => {
    const mediaType = MEDIA_TYPES[extname(name)]
    if (mediaType === undefined) return []
    const read = () => readFileSync(join(folder, name))
    return pageRoute(`${prefix}/${name}`, mediaType, read, { workerScope: workers[name] })
  })
}

/** The page's HTML, made anew for each request. `connectTo`: other servers that it may connect to. */
export function shellRoute(
  path: string,
  { prefix }: PageFiles,
  shell: () => Shell,
  connectTo: readonly string[] = [],
): HttpRoute {
  return pageRoute(path, 'text/html; charset=utf-8', () => shellOf(prefix, shell()), { connectTo })
}

function shellOf(prefix: string, { title, folder, facts }: Shell): string {
  const data = facts === undefined ? '' : ` data-facts="${escaped(JSON.stringify(facts))}"`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" type="image/svg+xml" href="${prefix}/icon.svg">
<link rel="stylesheet" href="${prefix}/base.css">
<link rel="stylesheet" href="${prefix}/${folder}/style.css">
<script type="module" src="${prefix}/${folder}/main.js"></script>
</head>
<body>
<main${data}><p class="quiet centred">One moment …</p><noscript>This page needs JavaScript.</noscript></main>
</body>
</html>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
