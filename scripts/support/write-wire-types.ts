/**
 * Writes `src/app/wire.ts` and `src/backend/wire.ts` from the documents of a development server; takes the addresses of its public
 * port and of its server API, else the usual ones.
 */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AsyncApiDocument, type OpenApiDocument, serverWireTypes, wireTypes } from './wire-types.ts'

const [server = 'http://127.0.0.1:8080', serverApi = 'http://127.0.0.1:9070'] = process.argv.slice(2)
const [openApi, asyncApi, serverOpenApi] = await Promise.all([
  read<OpenApiDocument>(`${server}/openapi.json`),
  read<AsyncApiDocument>(`${server}/asyncapi.json`),
  read<OpenApiDocument>(`${serverApi}/server/openapi.json`),
])
const sources = join(import.meta.dirname, '..', '..', '..', 'src')
writeFileSync(join(sources, 'app', 'wire.ts'), wireTypes(openApi, asyncApi))
writeFileSync(join(sources, 'backend', 'wire.ts'), serverWireTypes(serverOpenApi, asyncApi))

async function read<Document>(url: string): Promise<Document> {
  return (await fetch(url)).json() as Promise<Document>
}
