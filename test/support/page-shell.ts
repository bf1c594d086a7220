/**
 * A page of `docs` as a reader follows it: its marked blocks, typed into a shell in a folder that has the project. The output
 * in a page may have `…` where runs differ: inside a line any text, alone on a line any lines.
 */

import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { runProgram } from './programs.ts'
import { PROJECT_ROOT } from './vectors.ts'

interface MarkedBlock {
  readonly language: string
  readonly text: string
}

/** The blocks of the page with a comment `run:` that names this test, in their order. */
export function markedBlocks(page: string, test: string): readonly MarkedBlock[] {
  const text = readFileSync(join(PROJECT_ROOT, page), 'utf8')
  const found = text.matchAll(/^<!-- run: (\S+) -->\n```(\w+)\n([\s\S]+?)^```$/gm)
  return [...found].flatMap(([, by, language = '', text = '']) => (by === test ? [{ language, text }] : []))
}

export class PageShell {
  readonly folder: string
  readonly #replaced: readonly (readonly [from: string, to: string])[]
  readonly #environment: Readonly<Record<string, string>>

  /** `folder` is empty. `replaced` are texts of the pages that are other ones here. */
  constructor(
    folder: string,
    replaced: Readonly<Record<string, string>> = {},
    environment: Readonly<Record<string, string>> = {},
  ) {
    this.folder = folder
    this.#replaced = Object.entries(replaced)
    this.#environment = environment
    for (const name of ['dist', 'node_modules', 'package.json', 'test'])
      symlinkSync(join(PROJECT_ROOT, name), join(folder, name))
    mkdirSync(join(folder, 'deploy'))
    cpSync(join(PROJECT_ROOT, 'deploy'), join(folder, 'deploy'), {
      recursive: true,
      filter: path => !path.includes('deploy/secrets'),
    })
  }

  /** The text as it is here. */
  here(text: string): string {
    return this.#replaced.reduce((before, [from, to]) => before.replaceAll(from, to), text)
  }

  /** Types the block, and fails unless its commands print what it shows. Lines of the server's log are left out. */
  async follows(t: Test, block: string): Promise<void> {
    const { commands, shown } = readBlock(this.here(block))
    const script = [
      `cd '${this.folder}'`,
      'unset NODE_OPTIONS',
      // The project's own program, as npx finds it in its folder.
      'npx() { shift; node dist/scripts/callsign.js "$@"; }',
      ...commands,
    ].join('\n')
    const { stdout } = await runProgram('/bin/bash', ['--norc', '-c', `exec 2>&1\n${script}`], {
      environment: { PATH: `${join(process.execPath, '..')}:/usr/bin:/bin`, ...this.#environment },
    })
    const printed = stdout.replaceAll(/^\{"level":.*\n/gm, '')
    if (!patternOf(shown).test(printed))
      t.fail(`the page shows\n${shown}\nand the commands print\n${printed}`)
    else t.pass(commands.join('; '))
  }
}

/** A command goes on behind a backslash, in a line that begins with two spaces, and up to the end of a here-document. */
function readBlock(block: string): { commands: readonly string[]; shown: string } {
  const commands: string[] = []
  const shown: string[] = []
  let hereEnd: string | undefined
  let isCommand = false
  for (const line of block.trimEnd().split('\n')) {
    isCommand = line.startsWith('$ ') || hereEnd !== undefined || (isCommand && line.startsWith('  '))
    if (!isCommand) shown.push(line)
    else if (line.startsWith('$ ') && hereEnd === undefined) commands.push(line.slice(2))
    else commands.push(`${commands.pop()}\n${line}`)
    if (line === hereEnd) hereEnd = undefined
    else hereEnd ??= /<<'?(\w+)'?$/.exec(line)?.[1]
  }
  return { commands, shown: shown.map(line => `${line}\n`).join('') }
}

function patternOf(shown: string): RegExp {
  const literal = shown.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${literal.replaceAll(/^…\n/gm, '(?:.*\\n)*').replaceAll('…', '.*')}$`)
}
