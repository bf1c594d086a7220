/**
 * Imported before all else that needs uWebSockets.js: whether that runs here, since it comes as a binary for each Node and
 * system. Where it does not, nothing that imports it can say so in a sentence.
 */

import { createRequire } from 'node:module'

try {
  createRequire(import.meta.url)('uWebSockets.js')
} catch (error) {
  process.stderr.write(`callsign: ${sentenceOf(error)}\n`)
  process.exit(1)
}

function sentenceOf(error: unknown): string {
  const here = [`Node ${process.version}`, `${process.platform} ${process.arch}`, ...glibc()].join(', ')
  // The first line is about all systems, the next about this one.
  const [first, second] = String(error).split(/\n+/)
  const [missing] = /uws_linux_(?:x64|arm64)_(?:115|127|137)\.node(?='$)/.exec(second ?? '') ?? []
  if (missing !== undefined) {
    return `uWebSockets.js does not run here (${here}): ${missing} is missing. A build keeps only what the Node and the system under it can run: run npm ci and build again, with this Node`
  }
  return `uWebSockets.js does not run here (${here}): it is there for Node 20 with glibc 2.27 or newer, and for Node 22 and 24 with glibc 2.38 or newer, as in Debian 13 and Ubuntu 24.04 (${second ?? first})`
}

function glibc(): string[] {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  return header.glibcVersionRuntime === undefined ? [] : [`glibc ${header.glibcVersionRuntime}`]
}
