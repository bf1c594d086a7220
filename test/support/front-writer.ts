/** The writer's side of fronts that are real processes, on a clock that the test moves. */

import type { Duplex } from 'node:stream'
import { Link } from '../../src/fronts/link/link.ts'
import { realWorld } from '../../src/runtime/clock.ts'
import { FrontProcesses, type FrontProcessesDeps } from '../../src/server/fronts/front-processes.ts'
import { makeStage } from './actors.ts'
import { startedProgram } from './programs.ts'
import { FakeWorld } from './world.ts'

interface Line {
  readonly event: string
  readonly front: string
  readonly pid?: number
}

export class TestWriter {
  readonly world = new FakeWorld()
  readonly fronts: FrontProcesses
  /** All words of fronts, in order. */
  readonly said: string[] = []
  readonly lines: Line[] = []
  /** The newest connection of each front. */
  readonly sockets = new Map<string, Duplex>()
  readonly links = new Map<string, Link>()
  readonly #waiting = new Set<() => void>()

  constructor({
    count,
    args = [],
    program = startedProgram('test/support/front-program'),
  }: Pick<FrontProcessesDeps, 'count'> & Partial<FrontProcessesDeps>) {
    const log = (line: Line) => {
      this.lines.push(line)
      this.#look()
    }
    this.fronts = new FrontProcesses({
      count,
      args,
      program,
      world: this.world,
      logger: { info: log, warn: log } as FrontProcessesDeps['logger'],
      onStarted: (socket, name) => this.#onStarted(socket, name),
    })
  }

  /** Resolves once this is so. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>(resolve => this.#waiting.add(resolve))
  }

  /** The processes of a front, oldest first. */
  pidsOf(front: string): readonly number[] {
    return this.#linesOf('front-started', front).map(({ pid }) => pid!)
  }

  ends(front: string): readonly Line[] {
    return this.#linesOf('front-ended', front)
  }

  /** Resolves when so many processes of a front have ended. */
  async ended(front: string, times: number): Promise<void> {
    await this.until(() => this.ends(front).length === times)
  }

  /** Stops with the shortest deadline. */
  async stopNow(): Promise<void> {
    const stopped = this.fronts.stop(1)
    this.world.advance(1)
    await stopped
    for (const link of this.links.values()) link.close()
  }

  #onStarted(socket: Duplex, name: string) {
    let isReady = false
    const link: Link = new Link({
      socket,
      self: { name: 'writer', version: '1' },
      system: makeStage().system,
      serves: new Map(),
      world: realWorld(),
      onMessage: said => {
        isReady = true
        this.said.push(String(said))
        this.#look()
        return undefined
      },
      onLost: () => {
        isReady = false
      },
    })
    this.sockets.set(name, socket)
    this.links.set(name, link)
    return {
      get isReady() {
        return isReady
      },
      stop: () => link.send('stop'),
    }
  }

  #linesOf(event: string, front: string): readonly Line[] {
    return this.lines.filter(line => line.event === event && line.front === front)
  }

  #look(): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }
}
