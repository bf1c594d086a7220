/**
 * A connection in a seeded run, and the two ends of it: what the server sends waits until the kernel takes it, and then
 * until the client reads it; what the client writes waits until it arrives. Either end may be gone before the other
 * knows. Nothing moves until the run says so.
 */

import type { Accept, Connection, ConnectionEvents } from '../../src/transport/connection.ts'

/** A frame as the client reads it. */
export class ServerFrame {
  readonly command: string
  readonly body: string
  readonly #head: string

  constructor(octets: Buffer) {
    const text = octets.toString('latin1', 0, octets.length - 1)
    const headEnd = text.indexOf('\n\n')
    this.#head = text.slice(0, headEnd + 1)
    this.command = text.slice(0, text.indexOf('\n'))
    this.body = text.slice(headEnd + 2)
  }

  header(name: string): string | undefined {
    const at = this.#head.indexOf(`\n${name}:`)
    if (at < 0) return undefined
    const start = at + name.length + 2
    return this.#head.slice(start, this.#head.indexOf('\n', start))
  }
}

/** The owners of a link's two ends. */
export interface LinkOwner {
  /** The server sends a frame, in the moment it does. */
  onSent(link: Link, frame: ServerFrame): void
  /** The client reads one. */
  onFrame(link: Link, frame: ServerFrame): void
  /** The client sees the connection's end. */
  onOver(link: Link): void
}

export class Link implements Connection {
  readonly id: string
  readonly network = 'loopback'
  readonly authorization = ''
  readonly #owner: LinkOwner
  readonly #events: ConnectionEvents
  #unsent: ServerFrame[] = []
  #unsentBytes = 0
  #inFlight: ServerFrame[] = []
  #upwards: Buffer[] = []
  /** The server has ended it: the client reads the rest, then the end. */
  #endCode: number | undefined
  /** The client is gone, which the server does not know yet. */
  #isCut = false
  /** The server knows of the end. */
  isClosed = false

  constructor(id: string, accept: Accept, owner: LinkOwner) {
    this.id = id
    this.#owner = owner
    this.#events = accept(this)
  }

  // The server's end.

  send(octets: Uint8Array): void {
    if (this.#endCode !== undefined || this.isClosed) return
    this.#unsentBytes += octets.length
    // A heart-beat.
    if (octets.length === 1) return
    const frame = new ServerFrame(octets as Buffer)
    this.#unsent.push(frame)
    this.#owner.onSent(this, frame)
  }

  bufferedBytes(): number {
    return this.isClosed ? 0 : this.#unsentBytes
  }

  end(code: number): void {
    this.#endCode ??= code
  }

  close(): void {
    this.#onClosed(1006)
  }

  // The client's end.

  write(text: string): void {
    if (!this.#isCut) this.#upwards.push(Buffer.from(text, 'latin1'))
  }

  /** The client is gone: what it has not read is lost, what it wrote may still arrive. */
  cut(): void {
    if (this.#isCut) return
    this.#isCut = true
    this.#inFlight = []
    this.#owner.onOver(this)
  }

  // The events in between.

  get isCut(): boolean {
    return this.#isCut
  }

  /** Either end is done with it. */
  get isEnding(): boolean {
    return this.#isCut || this.#endCode !== undefined
  }

  /** Whether there is something that the client has not read. */
  get isUnread(): boolean {
    return this.#unsent.length + this.#inFlight.length > 0
  }

  /** Whether anything is on its way. */
  get isBusy(): boolean {
    if (this.isClosed) return false
    const downwards = this.#isCut ? 0 : this.#unsent.length + this.#inFlight.length
    return downwards + this.#upwards.length > 0 || this.#endCode !== undefined || this.#unsentBytes > 0
  }

  /** The server gets the next of what the client wrote. */
  arrive(): void {
    const octets = this.#upwards.shift()
    if (octets !== undefined && !this.isClosed && this.#endCode === undefined) this.#events.onBytes(octets)
  }

  /** The kernel takes what the server sent; a client that is gone leaves it there. */
  flush(): void {
    if (this.isClosed || this.#isCut) return
    this.#inFlight.push(...this.#unsent)
    this.#unsent = []
    if (this.#unsentBytes === 0) return
    this.#unsentBytes = 0
    this.#events.onDrain()
  }

  /** The client reads all that has arrived. */
  read(): void {
    const frames = this.#inFlight
    this.#inFlight = []
    for (const frame of frames) if (!this.#isCut) this.#owner.onFrame(this, frame)
    if (this.#endCode !== undefined && this.#unsent.length === 0 && !this.#isCut) {
      this.cut()
      this.#onClosed(this.#endCode)
    }
  }

  /** All that the client wrote arrives. */
  flowUp(): void {
    while (this.#upwards.length > 0) this.arrive()
  }

  /** Everything that is on its way gets there; the server sees a client that is gone. */
  flow(): void {
    this.flowUp()
    this.flush()
    this.read()
    if (this.#isCut) this.#onClosed(1006)
  }

  /** The server sees that the client is gone. */
  notice(): void {
    if (this.#isCut) this.#onClosed(1006)
  }

  /** The server's process is gone. */
  die(): void {
    this.isClosed = true
    this.cut()
  }

  #onClosed(code: number): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#upwards = []
    this.#events.onClosed(code)
    // A hard close cuts the client off, too.
    this.cut()
  }
}
