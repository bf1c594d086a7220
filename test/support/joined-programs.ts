/**
 * The built programs with their modules joined into a few files, for the suite: a server begins in three fifths of the processor
 * time, and the suite starts hundreds. The code is the same; each module still finds its neighbours where it was built.
 */

import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { PROJECT_ROOT } from './vectors.ts'

/** Writes them into the folder, which is `CALLSIGN_JOINED_PROGRAMS` for the tests. */
export async function joinPrograms(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  const programsIn = (folder: string, isProgram: RegExp) =>
    readdirSync(join(BUILT, folder))
      .filter(name => isProgram.test(name))
      .map(name => join(folder, name))
  const programs = [
    ...STARTED_BY_SERVER,
    'src/main.js',
    ...programsIn('scripts', /\.js$/),
    ...programsIn('test/support', /-program\.js$/),
  ]
  await build({
    absWorkingDir: PROJECT_ROOT,
    entryPoints: programs.map(program => join(BUILT, program)),
    outbase: BUILT,
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    logLevel: 'warning',
    plugins: [keepPlaces(folder)],
  })
}

/** Each module knows the place where it was built, as if it still ran there. */
function keepPlaces(folder: string): Plugin {
  return {
    name: 'keep-places',
    setup({ onLoad }) {
      onLoad({ filter: /\.js$/ }, ({ path }) => {
        const program = relative(BUILT, path)
        const place = STARTS_PROGRAMS.includes(program) ? join(folder, program) : path
        const contents = readFileSync(path, 'utf8')
          .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(place).href))
          .replaceAll('import.meta.dirname', JSON.stringify(dirname(place)))
          .replaceAll('import.meta.filename', JSON.stringify(place))
        return { contents, loader: 'js' }
      })
    },
  }
}

const BUILT = join(PROJECT_ROOT, 'dist')
const STARTED_BY_SERVER = [
  'src/front.js',
  'src/check/check-program.js',
  'src/delivery/sending-worker.js',
  'src/keyserver/vrf/vrf-worker.js',
]
/** These start programs beside them, which are joined too. */
const STARTS_PROGRAMS = [
  'src/server/fronts/front-processes.js',
  'src/server/listeners.js',
  'src/check/check-process.js',
  'src/delivery/sending-thread.js',
  'src/keyserver/vrf/vrf-thread.js',
]
