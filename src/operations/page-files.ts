/**
 * What pages load: modules of `web/`, what they import of `src` and of packages, and style sheets, served as the build put them
 * there. A page is a shell that loads one module; its one inline script is the import map, which its policy names by its hash.
 */

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { HttpRoute } from '../transport/route.ts'
import { pageRoute } from './page-route.ts'

/** The folder of the compiled project. */
export const BUILT = join(import.meta.dirname, '..', '..')
/** Where the build puts the compiled modules of pages and their style sheets. */
export const WEB_FOLDER = join(BUILT, 'web')
/** Where the build puts the packages that pages import. */
export const PACKAGES_FOLDER = join(WEB_FOLDER, 'packages')

/** Files that the pages of one surface may load, under its own prefix. */
export interface PageFiles {
  /** Such as `/dev/modules`. */
  readonly prefix: string
  /** Folders and files under the built root; files that are not there are left out. */
  readonly folders: readonly string[]
  readonly files: readonly string[]
  /** Packages by the name that modules import them by, with their place under `PACKAGES_FOLDER`. */
  readonly packages: Readonly<Record<string, string>>
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

export function fileRoutes(
  { prefix, folders, files, workers = {} }: PageFiles,
  built: string,
): readonly HttpRoute[] {
  const single = files.filter(name => existsSync(join(built, name)))
  const names = [...folders.flatMap(folder => filesIn(built, folder)), ...single]
  return names.map(name => {
    const mediaType = MEDIA_TYPES[name.slice(name.lastIndexOf('.') + 1)]!
    const read = () => readFileSync(join(built, name))
    return pageRoute(`${prefix}/${name}`, mediaType, read, { workerScope: workers[name] })
  })
}

/** The page's HTML, made anew for each request. `connectTo`: other servers that it may connect to. */
export function shellRoute(
  path: string,
  files: PageFiles,
  shell: () => Shell,
  connectTo: readonly string[] = [],
): HttpRoute {
  const map = importMapOf(files)
  const scripts = [`'sha256-${createHash('sha256').update(map).digest('base64')}'`]
  const read = () => shellOf(files.prefix, map, shell())
  return pageRoute(path, 'text/html; charset=utf-8', read, { scripts, connectTo })
}

/** `#primitives` is the portable one of `src/log`. */
function importMapOf({ prefix, packages }: PageFiles): string {
  const places = Object.entries(packages).map(([name, place]) => [name, `${prefix}/web/packages/${place}`])
  const imports = { '#primitives': `${prefix}/src/log/primitives-portable.js`, ...Object.fromEntries(places) }
  return JSON.stringify({ imports })
}

function shellOf(prefix: string, importMap: string, { title, folder, facts }: Shell): string {
  const data = facts === undefined ? '' : ` data-facts="${escaped(JSON.stringify(facts))}"`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" type="image/svg+xml" href="${prefix}/web/icon.svg">
<link rel="stylesheet" href="${prefix}/web/base.css">
<link rel="stylesheet" href="${prefix}/web/${folder}/style.css">
<script type="importmap">${importMap}</script>
<script type="module" src="${prefix}/web/${folder}/main.js"></script>
</head>
<body>
<main${data}><p class="quiet centred">One moment …</p><noscript>This page needs JavaScript.</noscript></main>
</body>
</html>
`
}

function filesIn(built: string, folder: string): readonly string[] {
  if (!existsSync(join(built, folder))) return []
  return readdirSync(join(built, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => /\.(?:js|css|svg)$/.test(name))
    .map(name => `${folder}/${name}`)
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}
