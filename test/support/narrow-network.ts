/**
 * A line of few bits a second: a network namespace behind a pair of interfaces, whose way down passes a token bucket. A browser
 * runs in it; gateway and senders are outside.
 */

import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { CHROMIUM } from '../../scripts/support/chromium.ts'
import { spawnBound } from './programs.ts'

export interface NarrowLine {
  /** This side's address for the other side. */
  readonly address: string
  /** Starts Chromium on the other side. */
  readonly chromium: string
  /** Forwards the same port on the other side's loopback, which browsers treat as a secure origin, to this URL. */
  forward(url: string): Promise<void>
  /** So many kilobits a second come down; all without a number, none with 0. */
  narrow(kbits?: number): void
}

/** Why it can't be made here, or false. */
export function skipWithoutNamespaces(): string | false {
  const name = nameOfLine()
  try {
    run('ip', 'netns', 'add', name)
    run('ip', 'link', 'add', name, 'type', 'veth', 'peer', 'name', `${name}n`, 'netns', name)
    run('tc', ...bucket(name, 100))
    return false
  } catch (error) {
    return `needs network namespaces and tc’s token buckets: ${String(error).split('\n')[0]}`
  } finally {
    runQuietly('ip', 'link', 'del', name)
    runQuietly('ip', 'netns', 'del', name)
  }
}

/** Until the end of the test. */
export function openNarrowLine(t: Test): NarrowLine {
  const name = nameOfLine()
  const [here, there] = [name, `${name}n`]
  const net = `10.${randomInt(64, 128)}.${randomInt(256)}`
  const inside = (...command: string[]) => run('ip', 'netns', 'exec', name, ...command)
  t.teardown(() => {
    runQuietly('ip', 'link', 'del', here)
    runQuietly('ip', 'netns', 'del', name)
  })
  run('ip', 'netns', 'add', name)
  run('ip', 'link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', name)
  run('ip', 'address', 'add', `${net}.1/30`, 'dev', here)
  run('ip', 'link', 'set', here, 'up')
  inside('ip', 'address', 'add', `${net}.2/30`, 'dev', there)
  inside('ip', 'link', 'set', there, 'up')
  inside('ip', 'link', 'set', 'lo', 'up')
  const folder = mkdtempSync(join(tmpdir(), 'narrow-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const chromium = join(folder, 'chromium')
  writeFileSync(chromium, `#!/bin/sh\nexec ip netns exec ${name} ${CHROMIUM} "$@"\n`)
  chmodSync(chromium, 0o755)
  return {
    address: `${net}.1`,
    chromium,
    async forward(url) {
      const { port } = new URL(url)
      const script = FORWARDS.replaceAll('PORT', port).replace('ADDRESS', `${net}.1`)
      const child = spawnBound(IP, ['netns', 'exec', name, process.execPath, '-e', script], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      t.teardown(() => child.kill())
      await once(child.stdout!, 'data')
    },
    narrow(kbits) {
      if (kbits === undefined) return runQuietly('tc', 'qdisc', 'del', 'dev', here, 'root')
      const none = ['qdisc', 'replace', 'dev', here, 'root', 'pfifo', 'limit', '0']
      run('tc', ...(kbits === 0 ? none : bucket(here, kbits)))
    },
  }
}

/** Like a home router: the queue holds a third of a second, and the rest is dropped. */
function bucket(dev: string, kbits: number): string[] {
  const about = ['rate', `${kbits}kbit`, 'burst', '1600b', 'latency', '300ms']
  // Counted as packets of IP, without the frames of Ethernet.
  return [
    'qdisc',
    'replace',
    'dev',
    dev,
    'root',
    'stab',
    'overhead',
    '-14',
    'linklayer',
    'ethernet',
    'tbf',
    ...about,
  ]
}

/** The gateway leaves out interfaces that are named `veth`. */
function nameOfLine(): string {
  return `line${randomInt(2 ** 24).toString(16)}`
}

function run(file: string, ...args: string[]): void {
  execFileSync(file, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: '/usr/sbin:/sbin:/usr/bin:/bin' },
  })
}

function runQuietly(file: string, ...args: string[]): void {
  try {
    run(file, ...args)
  } catch {
    // It was not there.
  }
}

const IP = '/usr/sbin/ip'
const FORWARDS = `
const { connect, createServer } = require('node:net')
const server = createServer(one => {
  const other = connect(PORT, 'ADDRESS')
  for (const [from, to] of [[one, other], [other, one]]) from.pipe(to).on('error', () => from.destroy())
})
server.listen(PORT, '127.0.0.1', () => console.log('listening'))`
