/**
 * The environment as settings are read from it: each read names its variable and what it may hold, and everything
 * wrong is gathered, so that an operator hears of all of it at once. A variable that nobody reads is wrong too.
 */

import { readFileSync } from 'node:fs'

export interface Listener {
  readonly host: string
  readonly port: number
}

export class EnvironmentReader {
  readonly problems: string[] = []
  readonly #environment: NodeJS.ProcessEnv
  readonly #known = new Set<string>()

  constructor(environment: NodeJS.ProcessEnv) {
    this.#environment = environment
  }

  /** The variable's text; undefined when it is absent or empty. */
  text(name: string): string | undefined {
    this.#known.add(name)
    return this.#environment[name] || undefined
  }

  /** A secret from the variable, or from the file that `<name>_FILE` names; its final line end is dropped. */
  secret(name: string): string | undefined {
    const path = this.text(`${name}_FILE`)
    const text = this.text(name)
    if (path === undefined) return text
    if (text !== undefined) this.problems.push(`${name} and ${name}_FILE are both set: keep one`)
    return this.#file(`${name}_FILE`, path)
      ?.toString('utf8')
      .replace(/\r?\n$/, '')
  }

  file(name: string): Buffer | undefined {
    const path = this.text(name)
    return path === undefined ? undefined : this.#file(name, path)
  }

  flag(name: string, on: string): boolean {
    const text = this.text(name)
    if (text !== undefined && text !== on)
      this.problems.push(`${name} is ${on} or not set, not ${quote(text)}`)
    return text === on
  }

  oneOf<Choice extends string>(name: string, choices: readonly Choice[], usual: Choice): Choice {
    const text = this.text(name) ?? usual
    const choice = choices.find(candidate => candidate === text)
    if (choice === undefined)
      this.problems.push(`${name} is one of ${choices.join(', ')}, not ${quote(text)}`)
    return choice ?? usual
  }

  integer(name: string, { usual, min, max }: { usual: number; min: number; max: number }): number {
    const text = this.text(name)
    if (text === undefined) return usual
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    this.problems.push(`${name} is a number from ${min} to ${max}, not ${quote(text)}`)
    return usual
  }

  listener(prefix: string, usualHost: string, usualPort: number): Listener {
    return {
      host: this.text(`${prefix}_HOST`) ?? usualHost,
      port: this.integer(`${prefix}_PORT`, { usual: usualPort, min: 0, max: 65_535 }),
    }
  }

  url(name: string): string | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
      this.problems.push(`${name} is an http or https address, not ${quote(text)}`)
    }
    return text.replace(/\/+$/, '')
  }

  /** A text that the test takes; what it refuses is named with what it should be. */
  formed(name: string, isGood: (text: string) => boolean, form: string): string | undefined {
    const text = this.text(name)
    if (text === undefined || isGood(text)) return text
    this.problems.push(`${name} is ${form}, not ${quote(text)}`)
    return undefined
  }

  /** A comma-separated list; what the test refuses is named with what it should be. */
  list(name: string, isGood: (item: string) => boolean, form: string): readonly string[] {
    const items = (this.text(name) ?? '').split(',').map(item => item.trim())
    const given = items.filter(item => item !== '')
    for (const item of given) {
      if (!isGood(item)) this.problems.push(`${name} is a list of ${form}, not ${quote(item)}`)
    }
    return given
  }

  /** A JSON value that `parse` takes apart; what it returns undefined for, or throws at, is named with its form. */
  json<Value>(name: string, form: string, parse: (value: unknown) => Value | undefined): Value | undefined {
    const text = this.secret(name)
    if (text === undefined) return undefined
    try {
      const value = parse(JSON.parse(text))
      if (value !== undefined) return value
    } catch {
      // Not the parser's message: it quotes the text, which may be a secret.
    }
    this.problems.push(`${name} is ${form}`)
    return undefined
  }

  /** Names those of `names`, which have been read, that are set while the secret `main` is not: they would do nothing. */
  refuseWithout(main: string, names: readonly string[]): void {
    if (this.text(main) !== undefined || this.text(`${main}_FILE`) !== undefined) return
    for (const name of names.flatMap(name => [name, `${name}_FILE`])) {
      if (this.#known.has(name) && this.#environment[name]) this.problems.push(`${name} needs ${main}`)
    }
  }

  refuseUnknown(): void {
    for (const name of Object.keys(this.#environment)) {
      if (name.startsWith('CALLSIGN_') && !this.#known.has(name)) {
        this.problems.push(`${name} is not a setting of this version`)
      }
    }
  }

  #file(name: string, path: string): Buffer | undefined {
    try {
      return readFileSync(path)
    } catch (error) {
      // Not the path: it may be the secret itself, put there instead of the name of its file.
      const reason = error instanceof Error && 'code' in error ? error.code : 'unknown reason'
      this.problems.push(`${name}: can't read the file that it names (${reason})`)
      return undefined
    }
  }
}

/** Enough of a wrong value to recognise it; it may be a secret in the wrong place. */
function quote(text: string): string {
  return text.length <= 20 ? JSON.stringify(text) : `a text of ${text.length} characters`
}
