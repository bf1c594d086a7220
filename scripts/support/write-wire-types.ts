/** Writes `src/app/wire.ts` from the documents of a development server; takes its address, else the usual one. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AsyncApiDocument, type OpenApiDocument, wireTypes } from './wire-types.ts'

const server = process.argv[2] ?? 'http://127.0.0.1:8080'
const [openApi, asyncApi] = await Promise.all([read('openapi'), read('asyncapi')])
const path = join(import.meta.dirname, '..', '..', '..', 'src', 'app', 'wire.ts')
writeFileSync(path, wireTypes(openApi as OpenApiDocument, asyncApi as AsyncApiDocument))

async function read(name: string): Promise<unknown> {
  return (await fetch(`${server}/${name}.json`)).json()
}
