/**
 * The operators' page, `/operator` on the port of the server API. It asks the server API like any
 * program, with a session that its user gets for a key. Nothing of the development surface is among its files.
 */

import type { HttpRoute } from '../transport/route.ts'
import { BUILT, fileRoutes, type PageFiles, shellRoute } from './page-files.ts'

/** Public facts of the log, by which the page verifies its entries. */
export interface ShownLog {
  readonly vkey: string
  readonly vrfPublicKey: string
  readonly indexVkey?: string
}

const FILES: PageFiles = { prefix: '/operator/pages', surface: 'operator' }

export function operatorPageRoutes(log: ShownLog, built = BUILT): readonly HttpRoute[] {
  const shell = () => ({ title: 'Callsign operators', folder: 'operator', facts: log })
  return [shellRoute('/operator', FILES, shell), ...fileRoutes(FILES, built)]
}
