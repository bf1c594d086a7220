/**
 * The last step of an installation: takes out of `node_modules` what the server never loads here, binaries for other
 * systems and other versions of Node, and type declarations. Run after `npm prune --omit=dev`; `npm ci` brings all back.
 */

import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url))
const { platform, arch, versions, report } = process
const { header } = report.getReport() as { header: { glibcVersionRuntime?: string } }
const libc = header.glibcVersionRuntime === undefined ? 'musl' : 'glibc'

/** Whether a file of `node_modules` is of no use here. */
function isForeign(path: string): boolean {
  if (/\.d\.[cm]?ts$/.test(path)) return true
  if (path.startsWith('uWebSockets.js/') && path.endsWith('.node')) return path !== OWN_SERVER
  const [, abi] = /^@(?:lmdb|msgpackr-extract)\/.*\.abi(\d+)\./.exec(path) ?? []
  const [, builtFor] = /^@(?:lmdb|msgpackr-extract)\/.*\.(glibc|musl)\.node$/.exec(path) ?? []
  return (abi !== undefined && abi !== versions.modules) || (builtFor !== undefined && builtFor !== libc)
}

const OWN_SERVER = `uWebSockets.js/uws_${platform}_${arch}_${versions.modules}.node`
if (!existsSync(join(MODULES, OWN_SERVER))) {
  process.stderr.write(`prune-install: ${OWN_SERVER} is missing, so nothing is taken out\n`)
  process.exit(1)
}
let bytes = 0
const names = readdirSync(MODULES, { recursive: true, encoding: 'utf8' })
for (const name of names.filter(isForeign)) {
  const path = join(MODULES, name)
  bytes += statSync(path).size
  rmSync(path)
}
process.stdout.write(`prune-install: took out ${Math.round(bytes / 1e6)} MB\n`)
