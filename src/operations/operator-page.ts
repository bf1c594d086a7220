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

const FILES: PageFiles = {
  prefix: '/operator/modules',
  folders: [
    'web/operator',
    'web/shared',
    'web/packages/lit-html',
    'web/packages/@noble',
    'src/client',
    'src/log',
  ],
  files: [
    'web/base.css',
    'web/icon.svg',
    'src/backend/server-link.js',
    'src/backend/callsign-server-error.js',
    'src/back-off.js',
    'src/errors.js',
    'src/limits.js',
    'src/recent.js',
  ],
  packages: {
    'lit-html': 'lit-html/lit-html.js',
    'lit-html/': 'lit-html/',
    '@noble/curves/': '@noble/curves/',
    '@noble/hashes/': '@noble/hashes/',
  },
}

export function operatorPageRoutes(log: ShownLog, built = BUILT): readonly HttpRoute[] {
  const shell = () => ({ title: 'Callsign operators', folder: 'operator', facts: log })
  return [shellRoute('/operator', FILES, shell), ...fileRoutes(FILES, built)]
}
