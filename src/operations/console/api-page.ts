/**
 * `/docs/api`: the OpenAPI document for people, by Swagger UI, whose files the build puts beside this module. Everything
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
  return [
    pageRoute('/docs/api', 'text/html; charset=utf-8', () => PAGE),
    pageRoute('/docs/api/initializer.js', 'text/javascript; charset=utf-8', () => INITIALIZER),
    ...files,
  ]
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
<link rel="stylesheet" href="/docs/api/swagger-ui.css">
<link rel="icon" type="image/svg+xml" href="/dev/pages/icon.svg">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/api/swagger-ui-bundle.js"></script>
<script src="/docs/api/initializer.js"></script>
</body>
</html>
`

/**
 * Light or dark as the system is. The document names the address that clients see; requests tried out here go to the
 * page's own server.
 */
const INITIALIZER = `const dark = matchMedia('(prefers-color-scheme: dark)')
const followScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', followScheme)
followScheme()
SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  tryItOutEnabled: true,
  validatorUrl: null,
  requestInterceptor: request => {
    const { pathname, search } = new URL(request.url, location.href)
    request.url = location.origin + pathname + search
    return request
  },
})
`
