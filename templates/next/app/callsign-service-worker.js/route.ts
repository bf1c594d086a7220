/** What the service worker loads, as the SDK has it. */

import { readFile } from 'node:fs/promises'

export const dynamic = 'force-static'

export async function GET(): Promise<Response> {
  const path = 'node_modules/@callsign/sdk/dist/src/app/push/service-worker.bundle.js'
  return new Response(await readFile(path), { headers: { 'content-type': 'text/javascript' } })
}
