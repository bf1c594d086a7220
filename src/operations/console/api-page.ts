/**
 * `/docs/api`: the OpenAPI document for people, by Swagger UI, whose files the build puts beside this module; `web/api` sets it up. Everything
 * comes from this server and no script is inline. Development mode only.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SignalError } from '../../errors.ts'
import type { HttpRoute } from '../../transport/route.ts'
import { pageRoute } from '../page-route.ts'

/** The files of Swagger UI that are served, with their media types, and their licences. */
export const SWAGGER_UI_FILES: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  LICENSE: 'text/plain; charset=utf-8',
  NOTICE: 'text/plain; charset=utf-8',
  'swagger-ui-bundle.js.LICENSE.txt': 'text/plain; charset=utf-8',
}

/** Where the build puts the files of Swagger UI. */
export const SWAGGER_UI_FOLDER = join(import.meta.dirname, 'swagger-ui')

/** The page and everything that it loads, the document itself apart (`/openapi.json`). */
export function apiPageRoutes(folder = SWAGGER_UI_FOLDER): readonly HttpRoute[] {
  const files = Object.entries(SWAGGER_UI_FILES).map(([name, contentType]) =>
    pageRoute(`/docs/api/${name}`, contentType, () => readBuilt(join(folder, name))),
  )
  return [pageRoute('/docs/api', 'text/html; charset=utf-8', () => PAGE), ...files]
}

function readBuilt(path: string): Uint8Array {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new SignalError('NOT_FOUND', 'the documentation is not there: npm run build makes it', { cause })
  }
}

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Callsign API</title>
<meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="/docs/api/swagger-ui.css">
<link rel="stylesheet" href="/dev/pages/api/style.css">
<link rel="icon" type="image/svg+xml" href="/dev/pages/icon.svg">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/api/swagger-ui-bundle.js"></script>
<script type="module" src="/dev/pages/api/main.js"></script>
</body>
</html>
`
