#!/usr/bin/env node
/** Makes a calling app in a new folder: the example of `examples/web`, the SDK, and the keys of a running server's log. */

import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { developmentPins } from '../src/app/development.ts'
import { messageOf } from '../src/errors.ts'
import { given, optional, runCommand, UsageError } from './support/command.ts'

const USAGE = `usage: callsign new FOLDER [--server URL]

Makes a calling app in FOLDER: sign-in, contacts and calls in a web page, for Vite, with the SDK beside it.

  --server URL   a running server, whose log's keys are built into the app (default http://127.0.0.1:8080)

Exit code: 0 made, 2 the folder is not empty or the server does not answer.
`

const ROOT = join(import.meta.dirname, '..', '..')

await runCommand({
  name: 'new',
  usage: USAGE,
  flags: { server: 'value' },
  operand: 'folder',
  async run(flags) {
    const folder = resolve(given('FOLDER', optional(flags, 'folder')))
    if (existsSync(folder) && readdirSync(folder).length > 0) throw new UsageError(`${folder} is not empty`)
    const server = optional(flags, 'server') ?? 'http://127.0.0.1:8080'
    const pins = await developmentPins(server).catch(error => {
      throw new UsageError(`${server} does not say its keys: ${messageOf(error)}`)
    })
    cpSync(join(ROOT, 'examples', 'web'), folder, { recursive: true })
    const packer = join(import.meta.dirname, 'support', 'pack-sdk.js')
    const tarball = execFileSync(process.execPath, [packer, folder], { encoding: 'utf8' }).trim()
    renameSync(tarball, join(folder, 'callsign-sdk.tgz'))
    rewrite(join(folder, 'package.json'), '"my-app"', JSON.stringify(basename(folder).toLowerCase()))
    const path = join(folder, 'src', 'pins.ts')
    rewrite(path, `'http://127.0.0.1:8080'`, JSON.stringify(server))
    rewrite(path, `{ vkey: '', vrfPublicKey: '' }`, JSON.stringify(pins))
    process.stdout.write(`An app for ${server} is in ${folder}. Go on with:

  cd ${flags.folder}
  npm install
  npm run dev

Open its page in two browsers, sign in as two people, and take the codes from ${server}/dev.
`)
    return 0
  },
})

function rewrite(path: string, before: string, after: string): void {
  writeFileSync(
    path,
    readFileSync(path, 'utf8').replace(before, () => after),
  )
}
