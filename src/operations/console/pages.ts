/**
 * The pages of a development server: `/dev`, `/dev/client` and `/docs/events`. Each is a shell that loads one module
 * of `web/`; the modules, what they import of `src` and of packages, and the style sheets are served as the build put
 * them there. Everything comes from this server; the one inline script is the import map, named in the policy by its hash.
 */

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { HttpRoute } from '../../transport/route.ts'
import { pageRoute } from './page-route.ts'

const BUILT = join(import.meta.dirname, '..', '..', '..')
/** Where the build puts the compiled modules of pages and their style sheets. */
export const WEB_FOLDER = join(BUILT, 'web')
/** Where the build puts the packages that pages import. */
export const PACKAGES_FOLDER = join(WEB_FOLDER, 'packages')

/** The pages by path: what their title says, and the folder of `web/` with their `main.js` and `style.css`. */
const PAGES = [
  { path: '/dev', title: 'Callsign console', folder: 'console' },
  { path: '/dev/client', title: 'Callsign client', folder: 'client' },
  { path: '/docs/events', title: 'Callsign events', folder: 'events' },
] as const

/** The folders under the built root whose modules pages may load: `#primitives` is the portable one there. */
const SERVED_FOLDERS = ['web', 'src/app', 'src/client', 'src/log'] as const
const SERVED_FILES = ['src/back-off.js', 'src/errors.js', 'src/limits.js', 'src/recent.js'] as const
/** It lies in another folder than its page. */
const SERVICE_WORKER = 'web/client/service-worker.js'
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

const IMPORT_MAP = JSON.stringify({
  imports: {
    '#primitives': '/dev/modules/src/log/primitives-portable.js',
    'lit-html': '/dev/modules/web/packages/lit-html/lit-html.js',
    'lit-html/': '/dev/modules/web/packages/lit-html/',
    qr: '/dev/modules/web/packages/qr/index.js',
    'qr/decode.js': '/dev/modules/web/packages/qr/decode.js',
    '@noble/curves/': '/dev/modules/web/packages/@noble/curves/',
    '@noble/hashes/': '/dev/modules/web/packages/@noble/hashes/',
  },
})

/** `built` is the folder of the compiled project. `mediaUrl`: where calls of the client have their media. */
export function pageRoutes(built = BUILT, mediaUrl?: string): readonly HttpRoute[] {
  const connectTo = mediaUrl === undefined ? [] : [new URL(mediaUrl).origin]
  const pages = PAGES.map(page =>
    pageRoute(page.path, 'text/html; charset=utf-8', () => shellOf(page), {
      scripts: [IMPORT_MAP_HASH],
      connectTo,
    }),
  )
  const single = SERVED_FILES.filter(name => existsSync(join(built, name)))
  const names = [...SERVED_FOLDERS.flatMap(folder => filesIn(built, folder)), ...single]
  const files = names.map(name => {
    const mediaType = MEDIA_TYPES[name.slice(name.lastIndexOf('.') + 1)]!
    const workerScope = name === SERVICE_WORKER ? '/dev/client' : undefined
    return pageRoute(`/dev/modules/${name}`, mediaType, () => readFileSync(join(built, name)), {
      workerScope,
    })
  })
  return [...pages, ...files]
}

function filesIn(built: string, folder: string): readonly string[] {
  if (!existsSync(join(built, folder))) return []
  return readdirSync(join(built, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => /\.(?:js|css|svg)$/.test(name))
    .map(name => `${folder}/${name}`)
}

function shellOf({ title, folder }: (typeof PAGES)[number]): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" type="image/svg+xml" href="/dev/modules/web/icon.svg">
<link rel="stylesheet" href="/dev/modules/web/base.css">
<link rel="stylesheet" href="/dev/modules/web/${folder}/style.css">
<script type="importmap">${IMPORT_MAP}</script>
<script type="module" src="/dev/modules/web/${folder}/main.js"></script>
</head>
<body>
<main><noscript>This page needs JavaScript.</noscript></main>
</body>
</html>
`
}

const IMPORT_MAP_HASH = `'sha256-${createHash('sha256').update(IMPORT_MAP).digest('base64')}'`
