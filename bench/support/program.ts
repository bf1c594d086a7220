/**
 * A Node process of the bench's own (a load generator, a limit, an engine) that does what it is asked over the
 * parent's channel. One request at a time; it ends with its parent.
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'

/** What a program is set up with, asked, and answers; a union where it can be asked several things. */
export interface Protocol {
  readonly setup: unknown
  readonly request: unknown
  readonly answer: unknown
}

type Reply = { readonly answer: unknown } | { readonly error: string }

/** A running program as its parent sees it. */
export class Program<P extends Protocol> {
  readonly pid: number
  readonly #child: ReturnType<typeof fork>

  private constructor(child: ReturnType<typeof fork>) {
    this.#child = child
    this.pid = child.pid ?? -1
  }

  /** Starts the program in `bench/support/<name>.ts`; resolves when it is set up, rejects with what it threw. */
  static async start<P extends Protocol>(
    name: string,
    setup: P['setup'],
    nodeArguments: readonly string[] = [],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<Program<P>> {
    const child = fork(new URL(`./${name}.js`, import.meta.url), {
      serialization: 'advanced',
      execArgv: ['--enable-source-maps', ...nodeArguments],
      env: { ...process.env, ...environment },
    })
    const program = new Program<P>(child)
    await program.#exchange(setup)
    return program
  }

  /** Rejects with what the program threw. */
  ask(request: P['request']): Promise<P['answer']> {
    return this.#exchange(request)
  }

  /** Resolves when the process has ended. */
  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    if (this.#child.connected) this.#child.disconnect()
    await exited
  }

  #exchange(message: unknown): Promise<P['answer']> {
    return new Promise((resolve, reject) => {
      const onExit = (code: number | null) => reject(new Error(`a program of the bench ended with ${code}`))
      this.#child.once('exit', onExit)
      this.#child.once('message', (reply: Reply) => {
        this.#child.off('exit', onExit)
        if ('error' in reply) reject(new Error(reply.error))
        else resolve(reply.answer)
      })
      this.#child.send(message as object)
    })
  }
}

/** Runs this process as a program: `open` takes the setup and returns the handler of requests. */
export function serveParent<P extends Protocol>(
  open: (setup: P['setup']) => Promise<(request: P['request']) => Promise<P['answer']> | P['answer']>,
): void {
  let handle: ((request: unknown) => unknown) | undefined
  process.on('message', async (message: unknown) => {
    try {
      if (handle === undefined) {
        handle = await open(message)
        reply({ answer: undefined })
      } else {
        reply({ answer: await handle(message) })
      }
    } catch (error) {
      reply({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  })
  // A CPU profile is written on exit, not when a signal ends the process.
  process.on('disconnect', () => process.exit(0))
}

function reply(message: Reply): void {
  process.send?.(message)
}
