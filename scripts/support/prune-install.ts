/**
 * Takes out of `node_modules` what never loads here; `npm ci` brings all back.
 *
 * As a step of the build: the binaries of uWebSockets.js for other systems and for versions of Node that the server does not run
 * with, 245 MB of them. With `--production`, after `npm prune --omit=dev`: all binaries for other systems and other versions of
 * Node than this one, and type declarations.
 */

import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url))
const { platform, arch, versions, report } = process
const { header } = report.getReport() as { header: { glibcVersionRuntime?: string } }
const libc = header.glibcVersionRuntime === undefined ? 'musl' : 'glibc'
const isProduction = process.argv.includes('--production')
/** Node 20, 22 and 24: a build by one of them may run with another. */
const ABIS = isProduction ? [versions.modules] : ['115', '127', '137']
const SERVER = 'uWebSockets.js'
const serverFor = (abi: string) => `${SERVER}/uws_${platform}_${arch}_${abi}.node`
const ownServers = ABIS.map(serverFor)

/** Whether a file of `node_modules` is of no use here. */
function isForeign(path: string): boolean {
  if (path.startsWith(`${SERVER}/`) && path.endsWith('.node')) return !ownServers.includes(path)
  if (!isProduction) return false
  if (/\.d\.[cm]?ts$/.test(path)) return true
  const [, abi] = /^@(?:lmdb|msgpackr-extract)\/.*\.abi(\d+)\./.exec(path) ?? []
  const [, builtFor] = /^@(?:lmdb|msgpackr-extract)\/.*\.(glibc|musl)\.node$/.exec(path) ?? []
  return (abi !== undefined && abi !== versions.modules) || (builtFor !== undefined && builtFor !== libc)
}

const own = serverFor(versions.modules)
if (!existsSync(join(MODULES, own))) {
  process.stderr.write(`prune-install: ${own} is missing, so nothing is taken out\n`)
  process.exit(isProduction ? 1 : 0)
}
const names = isProduction
  ? readdirSync(MODULES, { recursive: true, encoding: 'utf8' })
  : readdirSync(join(MODULES, SERVER)).map(name => `${SERVER}/${name}`)
let bytes = 0
for (const name of names.filter(isForeign)) {
  const path = join(MODULES, name)
  bytes += statSync(path).size
  rmSync(path)
}
if (bytes > 0)
  process.stdout.write(
    `callsign: took out ${Math.round(bytes / 1e6)} MB of node_modules that nothing here loads\n`,
  )
