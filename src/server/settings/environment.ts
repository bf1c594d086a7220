/**
 * Settings as they are read from the environment and the settings file: each read names its variable and what it may hold,
 * which makes the reference, and gathers everything wrong, so that an operator learns all of it at once. A setting that
 * nobody reads is wrong too.
 */

import { readFileSync, statSync } from 'node:fs'
import { guessOf } from './spelling.ts'

export interface Listener {
  readonly host: string
  readonly port: number
}

/** One line of the reference. */
export interface Setting {
  readonly name: string
  /** Its values, with unit and bounds. */
  readonly takes: string
  /** Its value where it is not set. */
  readonly usual: string
  /** Whether `<name>_FILE` may name a file that holds it. */
  readonly isSecret: boolean
}

export interface IntegerForm {
  readonly usual: number
  readonly min: number
  readonly max: number
  /** The unit of a count, such as `seconds`. */
  readonly unit?: string
  /** The default in words, where machines differ. */
  readonly usualText?: string
}

/** Values by name: those of the environment win over those of the settings file. */
export interface SettingsSources {
  readonly environment: NodeJS.ProcessEnv
  readonly file?: Readonly<Record<string, string>>
}

export class EnvironmentReader {
  readonly problems: string[] = []
  /** A sentence for each file of secrets that other users of the machine may read. */
  readonly openFiles: string[] = []
  readonly #environment: NodeJS.ProcessEnv
  readonly #settingsFile: Readonly<Record<string, string>>
  /** By name, in the order they are first read. */
  readonly #known = new Map<string, Setting>()

  constructor({ environment, file = {} }: SettingsSources) {
    this.#environment = environment
    this.#settingsFile = file
  }

  /** Those read so far. */
  get settings(): readonly Setting[] {
    return [...this.#known.values()]
  }

  /** The variable's text; undefined when it is absent or empty. */
  text(name: string, takes = 'text', usual = NONE): string | undefined {
    this.#note({ name, takes, usual, isSecret: false })
    return this.#environment[name] || this.#settingsFile[name] || undefined
  }

  /** A secret from the variable, or from the file that `<name>_FILE` names; its final line end is dropped. */
  secret(name: string, takes = 'text'): string | undefined {
    this.#note({ name, takes, usual: NONE, isSecret: true })
    const fileName = `${name}_FILE`
    const isHere = this.#environment[name] || this.#environment[fileName]
    const source = isHere ? this.#environment : this.#settingsFile
    const [path, text] = [source[fileName], source[name] || undefined]
    if (!path) return text
    if (text !== undefined) this.problems.push(`${name} and ${fileName} are both set: keep one`)
    const bytes = this.#file(fileName, path)
    if (bytes !== undefined) this.#noteIfOpen(fileName, path)
    return bytes?.toString('utf8').replace(/\r?\n$/, '')
  }

  file(name: string, takes = 'path of a PEM file'): Buffer | undefined {
    const path = this.text(name, takes)
    return path === undefined ? undefined : this.#file(name, path)
  }

  /** A file with a private key or other secrets, by default a PEM file. */
  keyFile(name: string, takes?: string): Buffer | undefined {
    const bytes = this.file(name, takes)
    if (bytes !== undefined) this.#noteIfOpen(name, this.text(name)!)
    return bytes
  }

  /** Call this once all settings are read: the settings file is of secrets where it holds one. */
  noteSettingsFile(path: string): void {
    const holdsSecret = this.settings.some(({ name, isSecret }) => isSecret && this.#settingsFile[name])
    if (holdsSecret) this.#noteIfOpen('--config', path)
  }

  flag(name: string, on: string, takes = on): boolean {
    const text = this.text(name, takes, 'not set')
    if (text !== undefined && text !== on)
      this.problems.push(`${name} is ${on} or not set, not ${quote(text)}`)
    return text === on
  }

  oneOf<Choice extends string>(name: string, choices: readonly Choice[], usual: Choice): Choice {
    const text = this.text(name, choices.join(' | '), usual) ?? usual
    const choice = choices.find(candidate => candidate === text)
    if (choice === undefined)
      this.problems.push(`${name} is one of ${choices.join(', ')}, not ${quote(text)}`)
    return choice ?? usual
  }

  integer(name: string, form: IntegerForm): number {
    return this.optionalInteger(name, form, form.usualText ?? String(form.usual)) ?? form.usual
  }

  /** As `integer`, undefined where it is not set. */
  optionalInteger(
    name: string,
    { min, max, unit }: Omit<IntegerForm, 'usual'>,
    usual = NONE,
  ): number | undefined {
    const text = this.text(name, `${min} to ${max}${unit === undefined ? '' : ` ${unit}`}`, usual)
    if (text === undefined) return undefined
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    this.problems.push(`${name} is a number from ${min} to ${max}, not ${quote(text)}`)
    return undefined
  }

  listener(prefix: string, usualHost: string, usualPort: number, usualHostText = usualHost): Listener {
    return {
      host: this.text(`${prefix}_HOST`, 'address or name', usualHostText) ?? usualHost,
      port: this.integer(`${prefix}_PORT`, { usual: usualPort, ...PORTS }),
    }
  }

  url(name: string, usual = NONE): string | undefined {
    const text = this.text(name, 'http or https address', usual)
    if (text === undefined) return undefined
    if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
      this.problems.push(`${name} is an http or https address, not ${quote(text)}`)
    }
    return text.replace(/\/+$/, '')
  }

  /** A text that the test takes; what it refuses is named with what it should be. */
  formed(name: string, isGood: (text: string) => boolean, form: string, usual = NONE): string | undefined {
    const text = this.text(name, form, usual)
    if (text === undefined || isGood(text)) return text
    this.problems.push(`${name} is ${form}, not ${quote(text)}`)
    return undefined
  }

  /** A comma-separated list; what the test refuses is named with what it should be. */
  list(name: string, isGood: (item: string) => boolean, form: string): readonly string[] {
    const items = (this.text(name, `${form}; by commas`) ?? '').split(',').map(item => item.trim())
    const given = items.filter(item => item !== '')
    for (const item of given) {
      if (!isGood(item)) this.problems.push(`${name} is a list of ${form}, not ${quote(item)}`)
    }
    return given
  }

  /** A JSON value that `parse` takes apart; what it returns undefined for, or throws at, is named with its form. */
  json<Value>(name: string, form: string, parse: (value: unknown) => Value | undefined): Value | undefined {
    const text = this.secret(name, form)
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
    const isSet = (name: string) => Boolean(this.#environment[name] || this.#settingsFile[name])
    if (isSet(main) || isSet(`${main}_FILE`)) return
    for (const name of names.flatMap(name => [name, `${name}_FILE`])) {
      if (this.#isKnown(name) && isSet(name)) this.problems.push(`${name} needs ${main}`)
    }
  }

  /** Names settings that nobody has read: of the environment those that begin as ours, of the settings file any. */
  refuseUnknown(): void {
    const ours = Object.keys(this.#environment).filter(name => name.startsWith('CALLSIGN_'))
    for (const name of new Set([...ours, ...Object.keys(this.#settingsFile)])) {
      if (this.#isKnown(name)) continue
      this.problems.push(`${name} is not a setting of this version${guessOf(name, this.#names())}`)
    }
  }

  #note(setting: Setting): void {
    if (!this.#known.has(setting.name)) this.#known.set(setting.name, setting)
  }

  #names(): readonly string[] {
    return this.settings.flatMap(({ name, isSecret }) => (isSecret ? [name, `${name}_FILE`] : [name]))
  }

  #isKnown(name: string): boolean {
    const main = this.#known.get(name.replace(/_FILE$/, ''))
    return this.#known.has(name) || main?.isSecret === true
  }

  #noteIfOpen(name: string, path: string): void {
    const mode = openMode(path)
    if (mode === undefined) return
    this.openFiles.push(
      `${name}: other users of this machine may read the file that it names, mode ${mode}: make it 600`,
    )
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

/**
 * A file's mode in octal digits where other users may use it in any way. A file of another user is read by way of its group,
 * as those that systemd and Kubernetes put there, so its group doesn't count.
 */
function openMode(path: string): string | undefined {
  const { mode, uid } = statSync(path)
  const user = process.geteuid?.()
  // Modes of Windows say nothing.
  if (user === undefined) return undefined
  const others = user === 0 || user === uid ? 0o077 : 0o007
  return (mode & others) === 0 ? undefined : (mode & 0o777).toString(8).padStart(3, '0')
}

/** Enough of a wrong value to recognise it; it may be a secret in the wrong place. */
function quote(text: string): string {
  return text.length <= 20 ? JSON.stringify(text) : `a text of ${text.length} characters`
}

const NONE = 'none'
export const PORTS = { min: 0, max: 65_535, unit: '(a port)' }
