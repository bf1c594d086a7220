/** The SDK with its elements as one module of a test's page, with the parts that only developers use. */

import { build } from 'esbuild'
import type { BrowserContext } from 'playwright-core'
import { builtProgram } from './programs.ts'

export const SDK_MODULE = '/sdk.js'

let code: Promise<string> | undefined

export async function serveSdk(context: BrowserContext): Promise<void> {
  code ??= bundle()
  const body = await code
  await context.route(`**${SDK_MODULE}`, route => route.fulfill({ contentType: 'text/javascript', body }))
}

async function bundle(): Promise<string> {
  const modules = ['src/app/app', 'src/app/development', 'src/ui/ui']
  const { outputFiles } = await build({
    stdin: {
      contents: modules.map(name => `export * from '${builtProgram(name)}'`).join('\n'),
      resolveDir: import.meta.dirname,
    },
    bundle: true,
    platform: 'browser',
    format: 'esm',
    external: ['livekit-client'],
    write: false,
    logLevel: 'warning',
  })
  return outputFiles[0]!.text
}
