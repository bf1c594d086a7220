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
const TC = '/usr/sbin/tc'

/** Why a test that needs networks of its own is skipped, or false. */
export const skipWithoutNetworks: string | false =
  (process.getuid?.() !== 0 && 'needs root, for networks of its own') || skipWithout([IP, TC], 'iproute2')

export class CutNetwork {
  readonly #name: string
  readonly #address: string
  /** The interface of either end, and what a program is run by there. */
  readonly #ends: readonly { readonly link: string; readonly by: readonly string[] }[]

  private constructor(number: number) {
    this.#name = `callsign${number}`
    this.#address = `10.213.${number}.1`
    this.#ends = [
      { link: `cut${number}`, by: [] },
      { link: `tuc${number}`, by: [IP, 'netns', 'exec', this.#name] },
    ]
  }

  /** There until the end of the test. */
  static async open(t: Test): Promise<CutNetwork> {
    const number = randomInt(1, 255)
    const network = new CutNetwork(number)
    const name = network.#name
    t.teardown(() => run(IP, 'netns', 'delete', name))
    await run(IP, 'netns', 'add', name)
    const [here, there] = network.#ends.map(({ link }) => link) as [string, string]
    await run(IP, 'link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', name)
    for (const [at, { link, by }] of network.#ends.entries()) {
      await run(...by, IP, 'address', 'add', `10.213.${number}.${at + 1}/24`, 'dev', link)
      await run(...by, IP, 'link', 'set', link, 'up')
    }
    return network
  }

  /** Each end drops all that it is to send, in silence. */
  async pull(): Promise<void> {
    for (const { link, by } of this.#ends) await run(...by, TC, 'qdisc', 'replace', 'dev', link, ...NOTHING)
  }

  async plug(): Promise<void> {
    for (const { link, by } of this.#ends) await run(...by, TC, 'qdisc', 'delete', 'dev', link, ...NOTHING)
  }

  /** Takes it away from this side, which had one network more by it. */
  async end(): Promise<void> {
    await run(IP, 'link', 'set', this.#ends[0]!.link, 'down')
  }

  /** One in this network, to which this side is 127.0.0.1: so its pages may use what else needs https. */
  async openBrowser(t: Test): Promise<Browser> {
    const program = join(t.testdir(), 'chromium')
    const command = `exec ${IP} netns exec ${this.#name} ${CHROMIUM} "$@"`
    writeFileSync(program, `#!/bin/sh\n${command}\n`, { mode: 0o755 })
    return launchBrowser(t, program, [`--host-resolver-rules=MAP 127.0.0.1 ${this.#address}`])
  }
}

async function run(...command: readonly string[]): Promise<void> {
  const [program, ...args] = command
  const { code, stderr } = await runProgram(program!, args)
  if (code !== 0) throw new Error(`${command.join(' ')}: ${stderr}`)
}

/** A queue that takes no packet. */
const NOTHING = ['root', 'pfifo', 'limit', '0']
