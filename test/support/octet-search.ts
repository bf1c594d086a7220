/** Looks for a text in octets, in each form that a program may have written it in. */

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** A found text: which, in which form, and where. */
export type Find = string

/** Texts to look for, by a name such as `mail`. */
export type Sought = Readonly<Record<string, string>>

export class OctetSearch {
  readonly #patterns: readonly (readonly [name: string, pattern: Buffer])[]

  constructor(sought: Sought) {
    this.#patterns = Object.entries(sought).flatMap(([name, text]) =>
      formsOf(text).map(([form, pattern]) => [`${name} ${form}`, pattern] as const),
    )
  }

  /** The texts in the octets, each form once. */
  in(octets: Buffer, where: string): Find[] {
    return this.#patterns.flatMap(([name, pattern]) =>
      octets.includes(pattern) ? [`${name} in ${where}`] : [],
    )
  }

  /** In all files of a folder and below it, read as they are. */
  below(folder: string): Find[] {
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted()
    const files = names.filter(name => statSync(join(folder, name)).isFile())
    return files.flatMap(name => this.in(readFileSync(join(folder, name)), name))
  }
}

/** Each pattern once. */
function formsOf(text: string): (readonly [form: string, pattern: Buffer])[] {
  const byPattern = new Map(allFormsOf(text).map(([form, pattern]) => [pattern.toString('latin1'), form]))
  return Array.from(byPattern, ([pattern, form]) => [form, Buffer.from(pattern, 'latin1')])
}

function allFormsOf(text: string): (readonly [form: string, pattern: Buffer])[] {
  const octets = Buffer.from(text)
  const utf16 = Buffer.from(text, 'utf16le')
  return [
    ['plain, small', Buffer.from(text.toLowerCase())],
    ['hex', Buffer.from(octets.toString('hex'))],
    ['HEX', Buffer.from(octets.toString('hex').toUpperCase())],
    ['octets of hex', Buffer.from(/^(?:[0-9a-f]{2})+$/i.test(text) ? Buffer.from(text, 'hex') : text)],
    ['UTF-16 LE', utf16],
    ['UTF-16 BE', Buffer.from(utf16).swap16()],
    ...[0, 1, 2].flatMap(before => {
      const [usual, url] = [base64Of(octets, before), base64Of(octets, before, 'base64url')]
      return [[`base64 behind ${before}`, usual] as const, [`base64url behind ${before}`, url] as const]
    }),
    // The last of the same patterns gives the name.
    ['plain', octets],
  ]
}

/** The characters that follow from the octets alone, behind 0, 1 or 2 octets of a group of three. */
function base64Of(octets: Buffer, before: number, encoding: 'base64' | 'base64url' = 'base64'): Buffer {
  const all = Buffer.concat([Buffer.alloc(before), octets])
  const from = Math.ceil((before * 8) / 6)
  const to = Math.floor((all.length * 8) / 6)
  return Buffer.from(all.toString(encoding).slice(from, to))
}
