/** Builds of the server beside the one under test: of the commit before, and with other constants. */

import { execFileSync } from 'node:child_process'
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_ROOT } from './vectors.ts'

/** A constant of a built file, such as `src/fronts/link/link`. */
export interface OtherConstant {
  readonly file: string
  readonly from: string
  readonly to: string
}

/** Compiles the commit before this one into an empty folder, says that it is of `version`, and returns the path of its program. */
export function buildPrevious(folder: string, version: string): string {
  const archive = join(folder, 'previous.tar')
  git('archive', '--output', archive, PREVIOUS)
  execFileSync('tar', ['-xf', archive, '-C', folder])
  symlinkSync(join(PROJECT_ROOT, 'node_modules'), join(folder, 'node_modules'))
  execFileSync(process.execPath, [join(PROJECT_ROOT, TSC), '-b', '.', '--noCheck'], { cwd: folder })
  linkBundles(folder)
  const path = join(folder, 'package.json')
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), version }))
  return programIn(folder)
}

/** Copies the built server into an empty folder, with another constant, and returns the path of its program. */
export function buildWith(folder: string, { file, from, to }: OtherConstant): string {
  for (const part of ['src', 'actors'])
    cpSync(join(PROJECT_ROOT, 'dist', part), join(folder, 'dist', part), { recursive: true })
  for (const name of ['node_modules', 'proto', 'package.json'])
    symlinkSync(join(PROJECT_ROOT, name), join(folder, name))
  linkBundles(folder)
  const path = join(folder, 'dist', `${file}.js`)
  const text = readFileSync(path, 'utf8')
  if (!text.includes(from)) throw new Error(`${file} has no ${from}`)
  writeFileSync(path, text.replace(from, to))
  return programIn(folder)
}

/** Packages that the build has bundled: without them a start takes a third longer. */
function linkBundles(folder: string): void {
  symlinkSync(join(PROJECT_ROOT, 'dist', 'node_modules'), join(folder, 'dist', 'node_modules'))
}

function programIn(folder: string): string {
  return join(folder, 'dist', 'src', 'main.js')
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, {
    cwd: PROJECT_ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

/** Why the commit before can't be run beside this one, or false. */
function whyNot(): string | false {
  try {
    git('rev-parse', '--verify', PREVIOUS)
  } catch {
    return 'needs the history of the project: the commit before is not there'
  }
  const changed = FORMS.find(
    path => formBefore(path) !== formIn(readFileSync(join(PROJECT_ROOT, path), 'utf8')),
  )
  return changed !== undefined && `this commit changes the form in ${changed}`
}

function formBefore(path: string): string | undefined {
  try {
    return formIn(git('show', `${PREVIOUS}:${path}`))
  } catch {
    // The commit before had no such file.
    return undefined
  }
}

function formIn(text: string): string | undefined {
  return FORM.exec(text)?.[1]
}

const PREVIOUS = 'HEAD^'
/** Files with the forms that nodes side by side have in common: of the link between them, and of what they store. */
const FORMS = ['src/fronts/link/link.ts', 'src/store/engine/store-form.ts']
const FORM = /FORM = (\d+)$/m
const TSC = 'node_modules/typescript/bin/tsc'

export const skipWithoutPrevious = whyNot()
