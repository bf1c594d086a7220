/**
 * The configuration of Janus: the files of `deploy/janus` with their values filled in, as `envsubst` does it for an
 * operator. A development server and the tests run Janus with the very files that operators install.
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { assert } from '../errors.ts'

/** By the names of `deploy/janus/janus.env.example`. */
export interface JanusValues {
  readonly JANUS_ADMIN_SECRET: string
  readonly JANUS_ADMIN_KEY: string
  readonly JANUS_TOKEN_SECRET: string
  readonly JANUS_EVENTS_URL: string
  readonly JANUS_EVENTS_USER: string
  readonly JANUS_EVENTS_PASSWORD: string
  readonly JANUS_WS_IP: string
  readonly JANUS_WS_PORT: number
  readonly JANUS_ADMIN_IP: string
  readonly JANUS_ADMIN_PORT: number
  /** First and last UDP port, such as `20000-24999`. */
  readonly JANUS_RTP_PORTS: string
}

/** Writes the files into a folder, which is made, readable by its owner alone. */
export function writeJanusFiles(folder: string, values: JanusValues): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const name of JANUS_FILES) {
    const text = readFileSync(join(TEMPLATES, name), 'utf8')
    writeFileSync(join(folder, name), filledIn(text, new Map(Object.entries(values))), { mode: 0o600 })
  }
}

/** The arguments that start Janus with these files. */
export function janusArguments(folder: string): string[] {
  return ['-F', folder, '-C', join(folder, 'janus.jcfg')]
}

function filledIn(text: string, values: ReadonlyMap<string, string | number>): string {
  return text.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => {
    const value = values.get(name)
    assert(value !== undefined, `no value for ${name}`)
    assert(/^[\w.:/+=-]+$/.test(String(value)), `${name} has characters that a value may not have`)
    return String(value)
  })
}

/** Where Debian's package has the program. */
export const JANUS_PROGRAM = '/usr/bin/janus'
const TEMPLATES = fileURLToPath(new URL('../../../deploy/janus/', import.meta.url))
const JANUS_FILES = [
  'janus.jcfg',
  'janus.transport.websockets.jcfg',
  'janus.transport.http.jcfg',
  'janus.plugin.videoroom.jcfg',
  'janus.eventhandler.sampleevh.jcfg',
]
