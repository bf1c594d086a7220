/** `/favicon.ico`: the icon that browsers ask for by themselves, also beside a picture or JSON that is opened alone. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { HttpRoute } from '../transport/route.ts'
import { PAGES_FOLDER } from './page-files.ts'
import { pageRoute } from './page-route.ts'

/** None where the pages are not built. */
export function iconRoutes(): readonly HttpRoute[] {
  const file = join(PAGES_FOLDER, 'dev', 'icon.svg')
  if (!existsSync(file)) return []
  return [pageRoute('/favicon.ico', 'image/svg+xml', () => readFileSync(file))]
}
