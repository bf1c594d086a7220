/** A network of its own for a browser, whose only cable the test pulls: neither its sockets nor its media get through then. */

import { randomInt } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import type { Test } from 'tap'
import { CHROMIUM } from '../../scripts/support/chromium.ts'
import { launchBrowser } from './browser.ts'
import { runProgram, skipWithout } from './programs.ts'

const IP = '/usr/sbin/ip'

/** Why a test that needs networks of its own is skipped, or false. */
export const skipWithoutNetworks: string | false =
  (process.getuid?.() !== 0 && 'needs root, for networks of its own') || skipWithout([IP], 'iproute2')

export class CutNetwork {
  readonly #name: string
  readonly #address: string

  private constructor(name: string, address: string) {
    this.#name = name
    this.#address = address
  }

  /** There until the end of the test. */
  static async open(t: Test): Promise<CutNetwork> {
    const number = randomInt(1, 255)
    const [name, here, there] = [`callsign${number}`, `cut${number}`, `tuc${number}`]
    const network = new CutNetwork(name, `10.213.${number}.1`)
    t.teardown(() => ip('netns', 'delete', name))
    await ip('netns', 'add', name)
    await ip('link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', name)
    await ip('address', 'add', `${network.#address}/24`, 'dev', here)
    await ip('-netns', name, 'address', 'add', `10.213.${number}.2/24`, 'dev', there)
    await ip('-netns', name, 'link', 'set', 'lo', 'up')
    await ip('-netns', name, 'link', 'set', there, 'up')
    await network.plug()
    return network
  }

  async pull(): Promise<void> {
    await ip('link', 'set', `cut${this.#number}`, 'down')
  }

  async plug(): Promise<void> {
    await ip('link', 'set', `cut${this.#number}`, 'up')
  }

  /** One in this network, to which this side is 127.0.0.1: so its pages may use what else needs https. */
  async openBrowser(t: Test): Promise<Browser> {
    const program = join(t.testdir(), 'chromium')
    writeFileSync(program, `#!/bin/sh\nexec ${IP} netns exec ${this.#name} ${CHROMIUM} "$@"\n`, {
      mode: 0o755,
    })
    return launchBrowser(t, program, [`--host-resolver-rules=MAP 127.0.0.1 ${this.#address}`])
  }

  get #number(): string {
    return this.#name.slice('callsign'.length)
  }
}

async function ip(...args: readonly string[]): Promise<void> {
  const { code, stderr } = await runProgram(IP, args)
  if (code !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr}`)
}
