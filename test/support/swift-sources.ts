/** Swift that only Apple's systems compile, and the Swift on the pages: type-checked against `swift/Tests/AppleStubs`. */

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { snippetFor } from '../../web/console/snippets.ts'
import type { Outcome } from './programs.ts'
import { runSwift } from './swift-root.ts'
import { PROJECT_ROOT } from './vectors.ts'

const SWIFT = join(PROJECT_ROOT, 'swift')
const STUBS = 'Tests/AppleStubs'
const APPLE = '.build/apple'
const MODULES = [APPLE, '.build/stubs', '.build/debug/Modules', 'Sources/COpenSSL'].flatMap(path => [
  '-I',
  path,
])
const COMMON = ['-frontend', '-swift-version', '6', '-parse-as-library', ...MODULES]
// As the package manager calls the package: what is `package` to its modules is so here.
const OF_PACKAGE = ['-package-name', 'swift']

/** Which the package manager writes: `Bundle.module`. */
const RESOURCES = 'swift/.build/debug/CallsignApp.build/DerivedSources/resource_bundle_accessor.swift'

/** Each is imported by those behind it. */
const STUB_MODULES = [
  'Darwin Combine UIKit Security AVFAudio CryptoKit PushKit CallKit UserNotifications Intents AuthenticationServices',
  'LiveCommunicationKit SwiftUI',
].flatMap(names => names.split(' '))

/** Makes modules of the declarations. Nothing is printed where all is well. */
export async function makeStubs(): Promise<string> {
  mkdirSync(join(SWIFT, '.build/stubs'), { recursive: true })
  let said = ''
  for (const name of STUB_MODULES) {
    const named = ['-module-name', name, '-o', `.build/stubs/${name}.swiftmodule`]
    said += outputOf(await runSwift([...COMMON, '-emit-module', ...named, `${STUBS}/${name}.swift`]))
  }
  return said
}

/** What the compiler says of these files together, whose paths are from the project's folder. */
export async function typeCheck(files: readonly string[], module?: string): Promise<string> {
  const named = module === undefined ? ['-module-name', 'Checked'] : ['-module-name', module, ...OF_PACKAGE]
  return outputOf(await runSwift([...COMMON, '-typecheck', ...named, ...pathsOf(files)]))
}

/** Makes `CallsignApp` with the parts for Apple's systems, for those who import it from here on: what the compiler says. */
export async function makeAppleModule(): Promise<string> {
  mkdirSync(join(SWIFT, APPLE), { recursive: true })
  const files = pathsOf([...swiftFiles('swift/Sources/CallsignApp'), RESOURCES])
  const named = ['-module-name', 'CallsignApp', ...OF_PACKAGE, '-o', `${APPLE}/CallsignApp.swiftmodule`]
  return outputOf(await runSwift([...COMMON, '-emit-module', ...named, ...files]))
}

function pathsOf(files: readonly string[]): string[] {
  return files.map(file => relative(SWIFT, join(PROJECT_ROOT, file)))
}

function outputOf({ stdout, stderr }: Outcome): string {
  return stdout + stderr
}

/** The Swift files in a folder of the project and below it. */
export function swiftFiles(folder: string): string[] {
  return readdirSync(join(PROJECT_ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.swift') && !name.includes('.build'))
    .map(name => join(folder, name))
}

/**
 * Each block of Swift on a page, and the console's, as a file of its own: name of the page, and path. Without those out of
 * `examples/ios` and the package, which are checked themselves.
 */
export function writeBlocks(): { readonly page: string; readonly file: string }[] {
  mkdirSync(join(SWIFT, '.build/pages'), { recursive: true })
  const target = { server: 'http://127.0.0.1:8080', vkey: 'a+b+c', vrfPublicKey: 'd' }
  const pages = ['docs', 'swift', 'examples']
    .flatMap(folder =>
      readdirSync(join(PROJECT_ROOT, folder), { recursive: true, encoding: 'utf8' }).map(name =>
        join(folder, name),
      ),
    )
    .filter(name => name.endsWith('.md') && !/node_modules|\.build/.test(name))
  const blocks = pages.flatMap(page => {
    const text = readFileSync(join(PROJECT_ROOT, page), 'utf8')
    return [...text.matchAll(/^( *)```swift\n(.*?)^ *```$/gms)].map(([, , code]) => ({ page, code: code! }))
  })
  const sources = [...swiftFiles('examples/ios'), ...swiftFiles('swift/Sources')]
  const files = sources.map(file => flat(readFileSync(join(PROJECT_ROOT, file), 'utf8')))
  const others = blocks.filter(({ code }) => !files.some(file => file.includes(flat(code))))
  others.push({ page: 'console', code: snippetFor('swift', target) })
  return others.map(({ page, code }, at) => {
    const file = join('swift/.build/pages', `${basename(page, '.md')}-${at}.swift`)
    writeFileSync(join(PROJECT_ROOT, file), code)
    return { page, file }
  })
}

/** Without indentation, for pages have excerpts. */
function flat(code: string): string {
  return code.replaceAll(/^ +/gm, '').trim()
}
