/** The client module as Node loads it, and as a browser or React Native does: bundled, with the portable primitives. */

import { build } from 'esbuild'
import * as client from '../../src/client/client.ts'
import { builtProgram } from './programs.ts'

export type Client = typeof client

export interface Bundle {
  readonly code: Uint8Array
  /** The files that are in it. */
  readonly inputs: readonly string[]
}

/** `iife` leaves the exports in the global `callsign`. */
export async function bundleClient(format: 'esm' | 'iife'): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    entryPoints: [builtProgram('src/client/client')],
    bundle: true,
    minify: true,
    platform: 'browser',
    format,
    globalName: 'callsign',
    write: false,
    metafile: true,
    logLevel: 'silent',
  })
  return { code: outputFiles[0]!.contents, inputs: Object.keys(metafile.inputs) }
}

/** Both builds by name, to run the same tests on. */
export async function clientBuilds(): Promise<readonly (readonly [string, Client])[]> {
  const { code } = await bundleClient('esm')
  const portable: Client = await import(`data:text/javascript;base64,${Buffer.from(code).toString('base64')}`)
  return [
    ['node', client],
    ['portable', portable],
  ]
}
