/**
 * docs/protocol/by-hand.md typed into two shells, and then the commands of pages that go on from it: docs/protocol/overview.md,
 * docs/protocol/sign-in.md, docs/protocol/accounts.md, docs/protocol/devices.md, docs/protocol/contacts.md. The shells show the pages' lines.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openServer } from '../support/open-server.ts'
import { skipWithout } from '../support/programs.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const read = (name: string) => readFileSync(join(PROJECT_ROOT, 'docs/protocol', name), 'utf8')
const PAGE = read('by-hand.md')
const TOOLS = ['/usr/bin/curl', '/usr/bin/jq', '/usr/bin/openssl', '/bin/bash']

interface Line {
  /** Whose terminal; Ann's where the page does not say. */
  readonly terminal: 'ann' | 'bob'
  readonly kind: 'command' | 'output'
  readonly text: string
}

function section(title: string, page = PAGE): string {
  const [, rest = ''] = page.split(`\n## ${title}\n`)
  return rest.split('\n## ')[0]!
}

/** Typed and shown lines, in order. A shown line belongs to its terminal. */
function linesOf(text: string): Line[] {
  const blocks = [...text.matchAll(/^```console\n([\s\S]+?)^```$/gm)].map(([, block]) => block!)
  const lines = blocks.flatMap(block => block.replaceAll('\\\n', '').trimEnd().split('\n'))
  return lines.map(line => {
    const [, prompt, command] = /^(ann|bob|)\$ (.*)$/.exec(line) ?? []
    const terminal = prompt === 'bob' ? 'bob' : 'ann'
    return command === undefined
      ? { terminal, kind: 'output', text: line }
      : { terminal, kind: 'command', text: command }
  })
}

/**
 * A pattern for a line that is printed with `…` where it is cut, and with ids, keys and times of another day. Checks are JSON where no
 * terminal is.
 */
function patternOf(line: string): RegExp {
  const [, check, detail] = /^ok +(\w+) +(.*)$/.exec(line) ?? []
  if (check !== undefined) return patternOf(`{"check":"${check}","ok":true,"detail":"${detail}"}`)
  const parts = line.split('…').map(part =>
    part
      .replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:]+\\\.\d{3}Z/g, '[\\dT:.Z-]+')
      .replaceAll(/\d{6,}/g, '\\d+')
      // The start of a cut key or hash.
      .replace(/"[\w/\\+]{6,8}$/, '"'),
  )
  return new RegExp(parts.join('.*'))
}

class Terminal {
  shown = ''
  readonly #shell: ChildProcess
  #onShown: (() => void)[] = []
  #count = 0

  constructor(t: Test, folder: string) {
    // Not the login shell's: commands must work without a user's settings.
    this.#shell = spawn('/bin/bash', ['--norc'], { cwd: folder, detached: true })
    t.teardown(() => process.kill(-this.#shell.pid!, 'SIGKILL'))
    for (const stream of [this.#shell.stdout!, this.#shell.stderr!]) {
      stream.setEncoding('utf8').on('data', chunk => {
        this.shown += chunk
        for (const resolve of this.#onShown.splice(0)) resolve()
      })
    }
  }

  async type(command: string): Promise<void> {
    const mark = `typed ${++this.#count}`
    this.#shell.stdin!.write(`${command}\necho; echo '${mark}'\n`)
    await this.shows(new RegExp(`^${mark}$`, 'm'))
  }

  async shows(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.shown)) await new Promise<void>(resolve => this.#onShown.push(resolve))
  }
}

t.test(
  'the commands of docs/protocol/by-hand.md and the pages after it print what these show',
  { skip: skipWithout(TOOLS, 'curl, jq, openssl') },
  async t => {
    const folder = t.testdir({ data: { try: {} } })
    const server = await openServer({ dataFolder: join(folder, 'data/dev') })
    t.teardown(() => server.end())
    for (const name of ['dist', 'node_modules']) symlinkSync(join(PROJECT_ROOT, name), join(folder, name))
    const story = section('A call in two terminals')
    const here = (text: string) =>
      text
        .replaceAll('http://127.0.0.1:8080', server.http)
        .replaceAll('127.0.0.1:8080', new URL(server.http).host)
    const [, script = ''] = /^```js\n([\s\S]+?)^```$/m.exec(story) ?? []
    writeFileSync(join(folder, 'data/try/listen.mjs'), here(script))

    const terminals = { ann: new Terminal(t, folder), bob: new Terminal(t, folder) }
    const further = ['sign-in.md', 'accounts.md', 'devices.md', 'contacts.md'].map(read)
    const texts = [
      section('From a code to a contact'),
      story,
      section('The proof'),
      section('Rules that hold everywhere', read('overview.md')),
      ...further,
    ]
    const lines = texts.flatMap(linesOf)
    const missing: string[] = []
    for (const { terminal, kind, text } of lines) {
      if (kind === 'command') await terminals[terminal].type(here(text))
      else await isShown(text).catch(() => missing.push(text))
    }
    t.same(missing, [], 'all that is printed there is shown')
    if (missing.length > 0) t.comment(terminals.ann.shown + terminals.bob.shown)
    t.ok(lines.length > 60, `${lines.length} lines`)
    const end = /"type":"call_status".*"status":"ended"/
    for (const terminal of Object.values(terminals)) await Promise.race([late(), terminal.shows(end)])

    /** In one of the terminals; a page has one column, and people have eyes. */
    function isShown(text: string): Promise<unknown> {
      const pattern = patternOf(here(text))
      return Promise.race([late(), ...Object.values(terminals).map(terminal => terminal.shows(pattern))])
    }
  },
)

function late(): Promise<never> {
  return new Promise((_, reject) => setTimeout(reject, PATIENCE_MS, new Error('not shown')).unref())
}

const PATIENCE_MS = 120_000
