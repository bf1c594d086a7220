/**
 * The native binaries that this version was made with: SHA-256 of each, by platform and Node. They come from npm
 * packages of private persons, not built by this project. A pinned binary can't be exchanged unnoticed; whether it
 * does what its source says, this does not tell. SECURITY.md says how an operator replaces it.
 */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname } from 'node:path'

export interface NativeBinary {
  readonly path: string
  /** SHA-256, in hexadecimal. */
  readonly sha256: string
  /** Package and version; undefined for a binary that is not pinned. */
  readonly from: string | undefined
}

/** The native binaries that a server on this machine loads. None of their code runs. */
export function binariesToLoad(): readonly NativeBinary[] {
  const require = createRequire(import.meta.url)
  const paths = new Set(loadedPaths())
  const load = process.dlopen
  process.dlopen = (_module: object, path: string) => {
    paths.add(path)
    throw new Error('it is only looked at')
  }
  for (const name of ['uWebSockets.js', 'lmdb', 'msgpackr']) {
    try {
      require(name)
    } catch {
      // It can do nothing without its binary.
    }
  }
  process.dlopen = load
  return [...paths].map(describe)
}

/**
 * Watches what this process loads. Where a native binary is neither pinned nor among `allowed`, `refuse` is called with a
 * sentence before any of the binary's code runs, and ends the process. Likewise for one that is loaded already.
 */
export function guardBinaries(allowed: readonly string[], refuse: (sentence: string) => never): void {
  const judge = (path: string) => foreignBinaries([describe(path)], allowed).forEach(refuse)
  loadedPaths().forEach(judge)
  const load = process.dlopen
  process.dlopen = (module: object, path: string, ...others: []) => {
    judge(path)
    load.call(process, module, path, ...others)
  }
}

function loadedPaths(): readonly string[] {
  // Without it the report looks up the names of all connected hosts.
  Object.assign(process.report, { excludeNetwork: true })
  // Without a stack of its own the report forms one, which reads source maps.
  const asked = { name: '', message: '', stack: '' }
  const { sharedObjects } = process.report.getReport(asked) as { sharedObjects: readonly string[] }
  return sharedObjects.filter(path => path.endsWith('.node'))
}

/** A sentence for each binary that is neither pinned nor among `allowed`, hexadecimal SHA-256 values of the operator's. */
export function foreignBinaries(
  binaries: readonly NativeBinary[],
  allowed: readonly string[],
): readonly string[] {
  return binaries
    .filter(({ from, sha256 }) => from === undefined && !allowed.includes(sha256))
    .map(
      ({ path, sha256 }) =>
        `${path} has SHA-256 ${sha256}, which is not a binary of this version: run npm ci again, or name it in CALLSIGN_NATIVE_HASHES if you chose it`,
    )
}

function describe(path: string): NativeBinary {
  const sha256 = createHash('sha256').update(readFileSync(path)).digest('hex')
  const pinned = PINNED.get(sha256)
  const isNamedSo = pinned !== undefined && basename(path) === basename(pinned)
  return { path, sha256, from: isNamedSo ? dirname(pinned) : undefined }
}

/** `<package>@<version>/<file>` by SHA-256. */
const PINNED: ReadonlyMap<string, string> = new Map([
  [
    'f4fa5d7b697529b45ac8aa3d57385d9af51bc1d2b26aa9f5b68ca4361542e665',
    'uwebsockets@3.0.6/uws_linux_x64_115.node',
  ],
  [
    '78e38a9a163b1cf33ce539619e5908111dea95a12e7943d95fbcdd524879caa8',
    'uwebsockets@3.0.6/uws_linux_x64_127.node',
  ],
  [
    '3b549c14e01d9d1faf234cdf4b6f0fb08158605e3692cd0eb1b905e327bd3449',
    'uwebsockets@3.0.6/uws_linux_x64_137.node',
  ],
  [
    '034e0fcccdc08f90df3b130f421516311831b1352fe38eab91abc2984c2fdf3a',
    'uwebsockets@3.0.6/uws_linux_arm64_115.node',
  ],
  [
    'a7d9bc3ec166421a49416d5ea4f49118ae68ea1dbf8a765c4f45a79b0b6adb13',
    'uwebsockets@3.0.6/uws_linux_arm64_127.node',
  ],
  [
    'b6eb007d627e00bcce03ad38f197124e9027c03f6fe784b37f97b8a6ea709cb4',
    'uwebsockets@3.0.6/uws_linux_arm64_137.node',
  ],
  [
    '7552dc27e278be4a5f9ca4f571676e9046929ef8753b1bb63b84f78e1a752a11',
    'uwebsockets@3.0.6/uws_darwin_x64_115.node',
  ],
  [
    '1bcd63a9cd5cda811d899b80f9b1f7c9f29d128feafebe6976069ab1045a0335',
    'uwebsockets@3.0.6/uws_darwin_x64_127.node',
  ],
  [
    '7df6e0b2be43048200370a64ee91d6563879f5d3b0207f846dc81377ffc4e189',
    'uwebsockets@3.0.6/uws_darwin_x64_137.node',
  ],
  [
    'f6132ac4d0954ce32ed716d5b367270904c5885bc6e01dcc8ae5809a8967d504',
    'uwebsockets@3.0.6/uws_darwin_arm64_115.node',
  ],
  [
    '84ab0c487fbbb895afbfa24c7ac02db5922b2eb468b3a4663aaca52af29b420c',
    'uwebsockets@3.0.6/uws_darwin_arm64_127.node',
  ],
  [
    'dd7623e7e600dcc1384c4a639ac05849f0c27125be8c431b702e0513e86613f0',
    'uwebsockets@3.0.6/uws_darwin_arm64_137.node',
  ],
  [
    'f0fa4692f2574eb941f8ed98c722c71ef9c9738589e1279dd265124e45d8feed',
    '@lmdb/lmdb-linux-x64@3.5.6/node.abi115.glibc.node',
  ],
  [
    '34b64bb44a713689b17a043c3562f48486ccfca59eaa036613995e9fcaae03ae',
    '@lmdb/lmdb-linux-x64@3.5.6/node.abi127.glibc.node',
  ],
  [
    '0029b0965ac93b05c057a4c7cf6a10f59dccbe69b23a32518209e190181a0b1c',
    '@lmdb/lmdb-linux-x64@3.5.6/node.napi.glibc.node',
  ],
  [
    '8dda4c141cd1ecbd365745c160e70c969d7e7de850a67b73c382c2ef361b2ba9',
    '@lmdb/lmdb-linux-x64@3.5.6/node.napi.musl.node',
  ],
  [
    'c40b24b5dddd16128ff070cf1a0f3b0647622ec039e20419b4cb80e7f11b39b6',
    '@msgpackr-extract/msgpackr-extract-linux-x64@3.0.4/node.abi115.glibc.node',
  ],
  [
    '19ec49a6e7b3b9d61ae81232a05851bffa142ac9d3cb509190579341b82a4a9b',
    '@msgpackr-extract/msgpackr-extract-linux-x64@3.0.4/node.abi115.musl.node',
  ],
  [
    '48bb0acaf5881374699e37ead45dd7aa867ec8b31591d99425eb8b925c9c8deb',
    '@msgpackr-extract/msgpackr-extract-linux-x64@3.0.4/node.napi.glibc.node',
  ],
  [
    'dff6aa6f86cc3e36d7e9bf34abda45a9120a42e66b863b1ae067061ca09471f6',
    '@msgpackr-extract/msgpackr-extract-linux-x64@3.0.4/node.napi.musl.node',
  ],
  [
    '2314da961b1f4e2a9f4b2fc92a27a85fc7e31ff5cd87abae348077122c92c58d',
    '@lmdb/lmdb-darwin-arm64@3.5.6/node.napi.node',
  ],
  [
    '398c3a336105c420e3cb57d78055fdd49e9648029e230b1c670a0eac3ca3b36b',
    '@lmdb/lmdb-darwin-x64@3.5.6/node.napi.node',
  ],
  [
    'cfbcb5f264a7bf5a3a03c0f1ee858f9378525d097a8e6d34bf8b378e2469a1ea',
    '@lmdb/lmdb-linux-arm64@3.5.6/node.abi115.glibc.node',
  ],
  [
    'ab2ad896c6574adad7acc2d46a887af2315b52489fd4b39c551dc118a5c6359a',
    '@lmdb/lmdb-linux-arm64@3.5.6/node.abi127.glibc.node',
  ],
  [
    'db71e081d0d6c56ecf487f741a724aecdb906c7b10d76369d3a7eeb1ac7fcf05',
    '@lmdb/lmdb-linux-arm64@3.5.6/node.napi.glibc.node',
  ],
  [
    'a09007db34594664be8cc8bb91768befd2909c78f4ae6103f7dd41f4daa2b242',
    '@lmdb/lmdb-linux-arm64@3.5.6/node.napi.musl.node',
  ],
  [
    'e58df85f2d68779abf3ecdd8f0c899ca20645a9e95160cadb59fc22202da09dc',
    '@msgpackr-extract/msgpackr-extract-darwin-arm64@3.0.4/node.napi.glibc.node',
  ],
  [
    '3bc479eba0f307226ba710052467f230aa32d17926e86014c49b63ae1921a697',
    '@msgpackr-extract/msgpackr-extract-darwin-x64@3.0.4/node.napi.glibc.node',
  ],
  [
    '5089c37abafaf3f33ee7567444828ef89dda5a3d3c39a86e5512ec594cbaa030',
    '@msgpackr-extract/msgpackr-extract-linux-arm64@3.0.4/node.abi115.musl.node',
  ],
  [
    'd438bd94ea917c2a987d0fde80eff34fc69290e30133c678b2e1d402ca5eebd2',
    '@msgpackr-extract/msgpackr-extract-linux-arm64@3.0.4/node.napi.musl.node',
  ],
])
