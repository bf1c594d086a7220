/**
 * Joins the modules of built programs into a few files, together with packages that are made of many: finding, reading and compiling 700 modules
 * is half of a server's start. The code stays as it was compiled, and each module still finds its neighbours.
 */

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { build, type Metafile, type Plugin } from 'esbuild'

const http = createRequire(import.meta.url)('node:http') as object
const ROOT = join(import.meta.dirname, '..', '..', '..')
export const BUILT = join(ROOT, 'dist')

/** The file with the licences of the packages that are joined, the last one that is written. */
export const LICENCES = 'LICENCES'

/** The server, and what it starts. */
export const SERVER_PROGRAMS = [
  'src/main.js',
  'src/front.js',
  'src/check/check-program.js',
  'src/delivery/sending-worker.js',
  'src/keyserver/index/index-program.js',
  'src/keyserver/vrf/vrf-worker.js',
]

/** The programs in a folder of `dist`. */
export function programsIn(folder: string, isProgram: RegExp): readonly string[] {
  return readdirSync(join(BUILT, folder))
    .filter(name => isProgram.test(name))
    .map(name => join(folder, name))
}

/**
 * Writes them into the folder, under the names that they have in `dist`, and the licences of the packages that are in them.
 * Programs of a group share files: each program more cuts these into smaller ones, which is why the server has a group of its own.
 */
export async function joinPrograms(folder: string, groups: readonly (readonly string[])[]): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  const inputs = new Set<string>()
  for (const group of groups) {
    const { metafile } = await joinGroup(folder, group)
    assertPlaces(folder, metafile)
    for (const path of Object.keys(metafile.inputs)) inputs.add(path)
  }
  writeFileSync(join(folder, LICENCES), licencesOf([...inputs]))
}

/** The licences of the packages whose files these are, by their paths from the root of the project. */
export function licencesOf(inputs: readonly string[]): string {
  const packages = new Set(inputs.flatMap(path => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []))
  return [...packages].toSorted().map(licenceOf).join('\n')
}

function joinGroup(folder: string, programs: readonly string[]) {
  return build({
    absWorkingDir: ROOT,
    entryPoints: programs.map(program => join(BUILT, program)),
    outbase: BUILT,
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    metafile: true,
    // Read when the first stack is formed (`src/source-maps.ts`): Node would read those that a file names as it loads it.
    sourcemap: 'external',
    sourcesContent: false,
    logLevel: 'warning',
    // CommonJS requires Node's own modules by it. Two imports of one file could have the same name.
    banner: { js: `const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);` },
    plugins: [keepPlaces(folder, programs), withoutWebSocket, choosePackages],
  })
}

/** The packages that are joined. Node finds the rest in `node_modules`: native ones, and those that a start does without. */
const JOINED_PACKAGES = new Set([
  ...['@bufbuild/protobuf', '@grpc/grpc-js', '@noble/curves', '@noble/hashes', 'nanoid'],
  ...['pino', 'prom-client', 'qr', 'typebox'],
])

const choosePackages: Plugin = {
  name: 'choose-packages',
  setup({ onResolve, resolve }) {
    onResolve({ filter: /^[^./#]/ }, async ({ path, importer, kind, pluginData }) => {
      if (pluginData === CHOSEN || kind === 'entry-point' || path.startsWith('node:')) return undefined
      // Loaded by grpc-js for a service that the server does not have.
      if (path === '@grpc/proto-loader') return { external: true }
      // A joined package brings its own.
      if (importer.includes('/node_modules/')) return undefined
      const [, name = path] = /^((?:@[^/]+\/)?[^/]+)/.exec(path) ?? []
      if (!JOINED_PACKAGES.has(name)) return { external: true }
      // Not from `dist/node_modules`, where a package's own packages have lost their names.
      return await resolve(path, { resolveDir: ROOT, kind, pluginData: CHOSEN })
    })
  },
}
const CHOSEN = {}

/** Each module knows the place where it was built, as if it still ran there. A module that starts a program knows the joined one. */
function keepPlaces(folder: string, programs: readonly string[]): Plugin {
  return {
    name: 'keep-places',
    setup({ onLoad, onResolve }) {
      onResolve({ filter: /^callsign:places$/ }, ({ path }) => ({ path, namespace: 'places' }))
      onLoad({ filter: /.*/, namespace: 'places' }, () => ({ contents: PLACES, resolveDir: ROOT }))
      // The server as the command that starts it finds it: beside the commands, as where it was built.
      if (!programs.includes('src/main.js'))
        onResolve({ filter: /\/src\/main\.js$/ }, ({ path }) => ({ path, external: true }))
      onLoad({ filter: /\/dist\/.*\.js$/ }, ({ path }) => {
        const text = readFileSync(path, 'utf8')
        if (!/\bimport\.meta\b/.test(text)) return undefined
        const program = relative(BUILT, path)
        const place = STARTS_PROGRAMS.includes(program) ? program : relative(folder, path)
        const [first = ''] = /^#!.*\n/.exec(text) ?? []
        const own = `import { placeOf } from 'callsign:places'; const $place = placeOf(${JSON.stringify(place)}); `
        const contents = first + own + text.slice(first.length)
        return { contents: contents.replaceAll(/\bimport\.meta\.(?=url|dirname|filename)/g, '$place.') }
      })
    },
  }
}

/**
 * Node's `http` without `WebSocket` and the like, which are made when they are asked for: an import of the module itself asks for all
 * of them, and so loads an HTTP client of 20 ms.
 */
const withoutWebSocket: Plugin = {
  name: 'without-web-socket',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^node:http$/ }, ({ path }) => ({ path, namespace: 'http' }))
    onLoad({ filter: /.*/, namespace: 'http' }, () => {
      const names = Object.entries(Object.getOwnPropertyDescriptors(http)).filter(
        ([, { get }]) => get === undefined,
      )
      return {
        contents: `export const { ${names.map(([name]) => name)} } = process.getBuiltinModule('node:http')`,
      }
    })
  },
}

/** Paths are relative, so that the folders may be moved together. */
const PLACES = `
  import { dirname, join } from 'node:path'
  import { pathToFileURL } from 'node:url'
  export function placeOf(path) {
    const filename = join(import.meta.dirname, path)
    return { filename, dirname: dirname(filename), url: pathToFileURL(filename).href }
  }`
/** These start programs beside them, which are joined too. */
const STARTS_PROGRAMS = [
  'src/server/fronts/front-processes.js',
  'src/server/listeners.js',
  'src/check/check-process.js',
  'src/delivery/sending-thread.js',
  'src/keyserver/index/index-process.js',
  'src/keyserver/vrf/vrf-thread.js',
]

/** `placeOf` counts from the folder itself. */
function assertPlaces(folder: string, { outputs }: Metafile): void {
  const home = relative(ROOT, folder)
  for (const [path, { inputs }] of Object.entries(outputs)) {
    if ('places:callsign:places' in inputs && dirname(path) !== home)
      throw new Error(`${path} is not in ${home}`)
  }
}

/** Each package under the root of the project, with the words of its licence. */
function licenceOf(path: string): string {
  const folder = join(ROOT, path)
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly [member in 'name' | 'version' | 'license']: string
  }
  const file = readdirSync(folder).find(file => /^licen[cs]e/i.test(file))
  const words = file === undefined ? '' : readFileSync(join(folder, file), 'utf8')
  return `${name} ${version} (${license})\n\n${words}\n`
}
