/** The program of a media gateway, as tests start it, kill it, and let it hang. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { spawnBound } from './programs.ts'

export abstract class GatewayProgram {
  readonly #command: readonly [string, ...string[]]
  #child: ChildProcess | undefined
  #log = ''

  constructor(command: readonly [string, ...string[]]) {
    this.#command = command
  }

  /** Rejects, or resolves with false, while it does not serve yet. */
  protected abstract answers(): Promise<boolean>

  /** All that it has printed. */
  get log(): string {
    return this.#log
  }

  protected get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Resolves when it answers. */
  async start(): Promise<void> {
    const [program, ...args] = this.#command
    const child = spawnBound(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    child.stdout!.on('data', this.#onText)
    child.stderr!.on('data', this.#onText)
    while (!(await this.answers().catch(() => false))) {
      if (!isRunning(child)) throw new Error(`${program} ended with ${child.exitCode}: ${this.#log}`)
      await sleep(LOOK_AGAIN_MS)
    }
  }

  /** Ends it at once, without a farewell; its rooms are gone. */
  async kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || !isRunning(child)) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  async restart(): Promise<void> {
    await this.kill()
    await this.start()
  }

  /** It hangs: connections are taken, and nothing is answered. */
  stop(): void {
    this.#child?.kill('SIGSTOP')
  }

  continue(): void {
    this.#child?.kill('SIGCONT')
  }

  readonly #onText = (chunk: Buffer): void => {
    this.#log += chunk.toString('utf8')
  }
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null
}

const LOOK_AGAIN_MS = 20
