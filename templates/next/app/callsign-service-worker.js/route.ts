/** The program of the service worker, as the SDK has it. */

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'

export const dynamic = 'force-static'

export async function GET(): Promise<Response> {
  const sdk = createRequire(`${process.cwd()}/`)
  const program = await readFile(sdk.resolve('@callsign/sdk/browser/service-worker'))
  return new Response(program, { headers: { 'content-type': 'text/javascript' } })
}
