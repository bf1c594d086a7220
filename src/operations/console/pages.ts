/** The pages of a development server: `/dev`, `/dev/client` and `/docs/events`, and the SDK for a script tag. Everything comes from this server. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { HttpRoute } from '../../transport/route.ts'
import { BUILT, fileRoutes, type PageFiles, shellRoute } from '../page-files.ts'
import { pageRoute } from '../page-route.ts'

/** By path: what their title says, and the folder of `web/` with their `main.js` and `style.css`. */
const PAGES = [
  { path: '/dev', title: 'Callsign console', folder: 'console' },
  { path: '/dev/client', title: 'Callsign client', folder: 'client' },
  { path: '/docs/events', title: 'Callsign events', folder: 'events' },
] as const

const FILES: PageFiles = {
  prefix: '/dev/pages',
  surface: 'dev',
  // It lies in another folder than its page.
  workers: { 'client/service-worker.js': '/dev/client' },
}

/** `built` is the folder of the compiled project. `mediaUrls`: where calls of the client have their media. */
export function pageRoutes(built = BUILT, mediaUrls: readonly string[] = []): readonly HttpRoute[] {
  const connectTo = mediaUrls.map(url => new URL(url).origin)
  const pages = PAGES.map(page => shellRoute(page.path, FILES, () => page, connectTo))
  return [...pages, ...sdkRoutes(built), ...fileRoutes(FILES, built)]
}

/** The SDK in one file, for any page of this machine that tries it with a script tag. */
function sdkRoutes(built: string): readonly HttpRoute[] {
  const path = join(built, 'src/ui/browser.bundle.js')
  if (!existsSync(path)) return []
  return [pageRoute('/dev/callsign.js', 'text/javascript; charset=utf-8', () => readFileSync(path))]
}
