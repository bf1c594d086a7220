#!/usr/bin/env node
/** Makes a calling app in a new folder: one of `templates`, the SDK, and the keys of a running server's log. */

import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { developmentPins } from '../src/app/development.ts'
import { messageOf } from '../src/errors.ts'
import { given, optional, runCommand, UsageError } from './support/command.ts'

/** By name: the file with the server and its keys, and the command that starts the app after `npm install`. */
const TEMPLATES: ReadonlyMap<string, { readonly pins: string; readonly start: string }> = new Map([
  ['vite', { pins: 'src/pins.ts', start: 'npm run dev' }],
  ['next', { pins: 'app/pins.ts', start: 'npm run dev' }],
  ['express', { pins: 'public/pins.js', start: 'npm start' }],
])

const USAGE = `usage: callsign new FOLDER [--template NAME] [--server URL]

Makes a calling app in FOLDER: sign-in, contacts, devices and calls in a web page, with the SDK beside it.

  --template NAME   vite: a page in TypeScript (default); next: the same in Next.js and React;
                    express: a page in JavaScript with one script tag, which nothing bundles
  --server URL      a running server, whose log's keys are built into the app (default http://127.0.0.1:8080)

Exit code: 0 made, 2 the folder is not empty, there is no such template or the server does not answer.
`

const ROOT = join(import.meta.dirname, '..', '..')

await runCommand({
  name: 'new',
  usage: USAGE,
  flags: { server: 'value', template: 'value' },
  operand: 'folder',
  async run(flags) {
    const folder = resolve(given('FOLDER', optional(flags, 'folder')))
    const name = optional(flags, 'template') ?? 'vite'
    const template = TEMPLATES.get(name)
    if (template === undefined)
      throw new UsageError(`there is no template ${name}, only ${[...TEMPLATES.keys()].join(', ')}`)
    if (existsSync(folder) && !statSync(folder).isDirectory()) throw new UsageError(`${folder} is a file`)
    if (existsSync(folder) && readdirSync(folder).length > 0) throw new UsageError(`${folder} is not empty`)
    const server = optional(flags, 'server') ?? 'http://127.0.0.1:8080'
    const pins = await developmentPins(server).catch(error => {
      throw new UsageError(`${server} does not say its keys: ${messageOf(error)}`)
    })
    cpSync(join(ROOT, 'templates', name), folder, { recursive: true })
    const packer = join(import.meta.dirname, 'support', 'pack-sdk.js')
    const tarball = execFileSync(process.execPath, [packer, folder], { encoding: 'utf8' }).trim()
    renameSync(tarball, join(folder, 'callsign-sdk.tgz'))
    const appName = basename(folder)
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
    rewrite(join(folder, 'package.json'), '"my-app"', JSON.stringify(appName))
    // Packages of npm leave out files of this name.
    writeFileSync(join(folder, '.gitignore'), 'node_modules\ndist\n.next\n')
    const path = join(folder, template.pins)
    rewrite(path, `'http://127.0.0.1:8080'`, JSON.stringify(server))
    rewrite(path, `{ vkey: '', vrfPublicKey: '' }`, JSON.stringify(pins))
    process.stdout.write(`An app for ${server} is in ${folder}. Go on with:

  cd ${quoted(String(flags.folder))}
  npm install
  ${template.start}

Open its page in two browsers, sign in as two people, and take the codes from ${server}/dev.
`)
    return 0
  },
})

/** As a shell reads it. */
function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}

function rewrite(path: string, before: string, after: string): void {
  writeFileSync(
    path,
    readFileSync(path, 'utf8').replace(before, () => after),
  )
}
