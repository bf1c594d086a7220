/** Apps of `callsign new`, made in a test's folder. Packages are those of this project, so nothing is fetched. */

import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, extname, join } from 'node:path'
import { type BuildOptions, build } from 'esbuild'
import type { Test } from 'tap'
import { PACKAGE } from './package-name.ts'
import { builtProgram, runProgram } from './programs.ts'
import { PROJECT_ROOT } from './vectors.ts'

/** Runs `callsign new` with these arguments. */
export function runNew(...args: string[]) {
  return runProgram(process.execPath, [builtProgram('scripts/callsign'), 'new', ...args])
}

/** Makes an app in the folder, with the packed SDK and these packages of the project installed. */
export async function makeApp(
  t: Test,
  folder: string,
  { template, server, packages = [] }: { template?: string; server: string; packages?: readonly string[] },
): Promise<void> {
  const chosen = template === undefined ? [] : ['--template', template]
  const made = await runNew(folder, ...chosen, '--server', server)
  t.equal(made.code, 0, made.stderr)
  const modules = join(folder, 'node_modules')
  const sdk = join(modules, PACKAGE)
  mkdirSync(sdk, { recursive: true })
  await runProgram('tar', ['xzf', join(folder, 'callsign-sdk.tgz'), '-C', sdk, '--strip-components=1'])
  for (const name of [...SDK_PACKAGES, ...packages]) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(PROJECT_ROOT, 'node_modules', name), join(modules, name))
  }
}

/** Resolves with the errors of the compiler. */
export async function compile(folder: string): Promise<string> {
  const { stdout } = await runProgram(process.execPath, [TSC, '-p', folder])
  return stdout
}

/** Bundles as Vite and Next.js do, which the project does not have. */
export async function bundle(folder: string, options: BuildOptions): Promise<void> {
  await build({
    absWorkingDir: folder,
    outdir: folder,
    allowOverwrite: true,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    external: ['livekit-client', 'livekit-client/*'],
    logLevel: 'silent',
    ...options,
  })
}

/** Serves the files of the folders, of the first that has one, and these pages. Resolves with the address. */
export async function serveFolders(
  t: Test,
  folders: readonly string[],
  pages: Readonly<Record<string, string>>,
): Promise<string> {
  const web = createServer(({ url = '' }, answer) => {
    const { pathname } = new URL(url, 'http://localhost')
    const path = folders.map(folder => join(folder, pathname)).find(isFile)
    const type = TYPES[extname(pathname)] ?? 'text/html'
    const text = pages[pathname] ?? (path === undefined ? undefined : readFileSync(path))
    answer.writeHead(text === undefined ? 404 : 200, { 'content-type': type }).end(text)
  }).listen(0, '127.0.0.1')
  t.teardown(() => web.close())
  await once(web, 'listening')
  return `http://localhost:${(web.address() as AddressInfo).port}/`
}

const TSC = join(PROJECT_ROOT, 'node_modules/typescript/bin/tsc')
const SDK_PACKAGES = [
  ...['@noble', 'qr', 'jose', 'lit', 'lit-html', 'lit-element'],
  ...['@lit/reactive-element', '@lit-labs/ssr-dom-shim', '@types/trusted-types'],
]
const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true
