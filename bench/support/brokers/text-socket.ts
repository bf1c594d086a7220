/** A connection that answers with lines and counted octets. */

import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connectTo } from '../load-socket.ts'

/** The answer that begins at a place of a text, and where it ends; undefined where more has to come. */
export type ReadOne<Value> = (
  text: string,
  at: number,
) => { readonly value: Value; readonly end: number } | undefined

export class TextSocket<Value> {
  readonly #socket: Socket
  readonly #readOne: ReadOne<Value>
  readonly #onValue: (value: Value) => void
  #text = ''

  private constructor(socket: Socket, readOne: ReadOne<Value>, onValue: (value: Value) => void) {
    this.#socket = socket
    this.#readOne = readOne
    this.#onValue = onValue
    socket.setEncoding('latin1')
    socket.on('data', text => this.#take(String(text)))
    socket.on('error', error => process.stderr.write(`${error.message}\n`))
  }

  static async open<Value>(
    port: number,
    readOne: ReadOne<Value>,
    onValue: (value: Value) => void,
  ): Promise<TextSocket<Value>> {
    const socket = connectTo({ port })
    const client = new TextSocket(socket, readOne, onValue)
    await once(socket, 'connect')
    return client
  }

  write(text: string): void {
    this.#socket.write(text, 'latin1')
  }

  #take(text: string): void {
    this.#text += text
    let at = 0
    for (let read = this.#readOne(this.#text, at); read !== undefined; read = this.#readOne(this.#text, at)) {
      at = read.end
      this.#onValue(read.value)
    }
    this.#text = this.#text.slice(at)
  }
}

/** The end of the line that begins there, without its break; undefined where it has none yet. */
export function lineAt(text: string, at: number): string | undefined {
  const end = text.indexOf('\r\n', at)
  return end === -1 ? undefined : text.slice(at, end)
}
