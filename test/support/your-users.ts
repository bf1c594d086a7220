/** Pages for backends as a reader follows them: their blocks, a folder with the example, and a shell that keeps its exports. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'
import { runProgram, spawnBound } from './programs.ts'
import type { OpenServer } from './server.ts'
import { PROJECT_ROOT } from './vectors.ts'

export interface PageBlock {
  readonly language: string
  /** The file of the example that it is from. */
  readonly file: string | undefined
  /** The test that the comment before it names. */
  readonly test: string | undefined
  readonly text: string
}

/** The blocks of a page of `docs`, in their order. */
export function blocksOf(page: string): readonly PageBlock[] {
  const text = readFileSync(join(PROJECT_ROOT, 'docs', page), 'utf8')
  const found = text.matchAll(/^(?:<!-- run: (\S+) -->\n)?```(\S+)(?: (\S+))?\n([\s\S]+?)^```$/gm)
  return Array.from(found, ([, test, language = '', file, text = '']) => ({ language, file, test, text }))
}

export class Reader {
  readonly folder: string
  /** The server's. */
  readonly dataFolder: string
  readonly #environment: Readonly<Record<string, string>>
  readonly #port: number

  private constructor(
    folder: string,
    dataFolder: string,
    port: number,
    environment: Readonly<Record<string, string>>,
  ) {
    this.folder = folder
    this.dataFolder = dataFolder
    this.#port = port
    this.#environment = environment
  }

  /** Beside a server that runs with this data folder; `folder` is new. */
  static async beside({ http, serverApi }: OpenServer, dataFolder: string, folder: string): Promise<Reader> {
    mkdirSync(folder)
    for (const name of ['dist', 'node_modules', 'package.json'])
      symlinkSync(join(PROJECT_ROOT, name), join(folder, name))
    mkdirSync(join(folder, 'data'))
    cpSync(join(PROJECT_ROOT, 'examples/express'), join(folder, 'examples/express'), { recursive: true })
    writeFileSync(join(folder, 'exports.sh'), '')
    const port = await freePort()
    return new Reader(folder, dataFolder, port, {
      PATH: `${join(process.execPath, '..')}:/usr/bin:/bin`,
      HOME: folder,
      NPM_CONFIG_UPDATE_NOTIFIER: 'false',
      PORT: `${port}`,
      SERVER_URL: http,
      SERVER_API_URL: serverApi,
      CALLSIGN_SERVER_API_PORT: new URL(serverApi).port,
      CALLSIGN_DATA_DIR: dataFolder,
    })
  }

  /** Runs the commands of a block, and fails unless they print what it shows. */
  async follows(t: Test, block: string): Promise<void> {
    const { commands, shown } = this.#read(block)
    const script = [...commands, 'declare -px >exports.sh'].join('\n')
    const { code, stdout, stderr } = await runProgram('/bin/bash', ['--norc', '-c', this.#script(script)], {
      environment: this.#environment,
    })
    if (code !== 0) throw new Error(`${block}\n${stderr}`)
    t.equal(stdout.trimEnd(), shown.join('\n'))
  }

  /** Runs the block's commands but its last, which goes on: resolves with its lines once it prints what the block shows. */
  async starts(t: Test, block: string): Promise<Started> {
    const { commands, shown } = this.#read(block)
    const script = [...commands.slice(0, -1), `exec ${commands.at(-1)}`].join('\n')
    const child = spawnBound('/bin/bash', ['--norc', '-c', this.#script(script)], {
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    t.teardown(() => child.kill())
    const started = new Started(child)
    await started.printed(shown[0]!)
    return started
  }

  #read(block: string) {
    const here = block
      .replaceAll('3000', `${this.#port}`)
      .replaceAll('http://127.0.0.1:9070', this.#environment.SERVER_API_URL!)
      .replaceAll('http://127.0.0.1:8080', this.#environment.SERVER_URL!)
      // A command may go on in the next line.
      .replaceAll(/ \\\n */g, ' ')
    const lines = here.trimEnd().split('\n')
    return {
      commands: lines.filter(line => line.startsWith('$ ')).map(line => line.slice(2)),
      shown: lines.filter(line => !line.startsWith('$ ')),
    }
  }

  #script(script: string): string {
    // A reader's Node has none of what the test runner puts into each.
    return `set -e\ncd '${this.folder}'\n. ./exports.sh\nunset NODE_OPTIONS\n${script}\n`
  }
}

/** A program that goes on, and what it prints. */
export class Started {
  readonly lines: string[] = []
  readonly #waiting = new Set<() => void>()
  readonly #ended: Promise<never>

  constructor(child: ChildProcess) {
    let stderr = ''
    child.stderr!.setEncoding('utf8').on('data', text => {
      stderr += text
    })
    this.#ended = once(child, 'close').then(([code]) => {
      throw new Error(`the program has ended with ${code}: ${stderr}`)
    })
    this.#ended.catch(() => {})
    createInterface({ input: child.stdout! }).on('line', line => {
      this.lines.push(line)
      for (const look of this.#waiting) look()
    })
  }

  /** Resolves once it has printed a line that begins so; rejects when it ends before. */
  printed(begin: string): Promise<void> {
    const isPrinted = new Promise<void>(resolve => {
      const look = () => {
        if (!this.lines.some(line => line.startsWith(begin))) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      look()
    })
    return Promise.race([isPrinted, this.#ended])
  }
}
