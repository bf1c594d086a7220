/**
 * Work for clients that are not signed in yet: a new connection's first bytes, with TLS its handshake, and its CONNECT.
 * Each turn of the event loop does a few pieces of it; the rest waits. So turns stay short when thousands of clients
 * come back at once, and those that are connected are served in between. CONNECTs go first: they complete a connection.
 * Networks take turns, so a crowd from one does not keep another waiting, and those in one IPv6 prefix share some.
 */

/** A connection that uWebSockets.js has accepted and not read yet. */
export interface NewConnection {
  /** Its bytes stay in the kernel until `resume`, and no timeout ends it. */
  pause(): unknown
  resume(): unknown
  /** Once the handler was called the connection must not be touched. A later handler replaces it. */
  onAborted(handler: () => void): unknown
}

export class Newcomers {
  readonly #piecesPerTurnMax: number
  readonly #nextTurn: (run: () => void) => void
  readonly #connects = new Waiting()
  readonly #connections = new WaitingByNetwork()
  #piecesThisTurn = 0

  constructor(
    piecesPerTurnMax: number = PIECES_PER_TURN_MAX,
    nextTurn: (run: () => void) => void = setImmediate,
  ) {
    this.#piecesPerTurnMax = piecesPerTurnMax
    this.#nextTurn = nextTurn
  }

  /** How many pieces wait. */
  get waiting(): number {
    return this.#connects.length + this.#connections.length
  }

  /**
   * Has a new connection read as soon as there is room. Bound: the process's open files. `networkOf` is called if the connection
   * waits.
   */
  admit<Connection extends NewConnection>(
    connection: Connection,
    networkOf: (connection: Connection) => string,
  ): void {
    if (this.#hasRoom) return this.#count()
    let isOver = false
    connection.pause()
    connection.onAborted(() => {
      isOver = true
    })
    this.#connections.push(networkOf(connection), () => {
      if (!isOver) connection.resume()
    })
  }

  /** Runs a client's CONNECT as soon as there is room, perhaps at once. */
  run(connect: () => void): void {
    if (!this.#hasRoom) return this.#connects.push(connect)
    this.#count()
    connect()
  }

  get #hasRoom(): boolean {
    return this.waiting === 0 && this.#piecesThisTurn < this.#piecesPerTurnMax
  }

  #count(): void {
    if (this.#piecesThisTurn++ === 0) this.#nextTurn(this.#onTurn)
  }

  readonly #onTurn = (): void => {
    this.#piecesThisTurn = 0
    while (this.waiting > 0 && this.#piecesThisTurn < this.#piecesPerTurnMax) {
      const run = this.#connects.take() ?? this.#connections.take()
      this.#count()
      run?.()
    }
  }
}

/** Networks take turns; within one, first in, first out. */
class WaitingByNetwork {
  /** In the order of their turns. */
  readonly #networks = new Map<string, Waiting>()
  length = 0

  push(network: string, run: () => void): void {
    const turn = turnOf(network)
    let waiting = this.#networks.get(turn)
    if (waiting === undefined) {
      waiting = new Waiting()
      this.#networks.set(turn, waiting)
    }
    waiting.push(run)
    this.length++
  }

  take(): (() => void) | undefined {
    for (const [network, waiting] of this.#networks) {
      this.#networks.delete(network)
      const run = waiting.take()
      if (waiting.length > 0) this.#networks.set(network, waiting)
      this.length--
      return run
    }
    return undefined
  }
}

/**
 * The name of the turn that a network takes. A prefix has as many as it stands for clients (`domain/network.ts`), so a
 * client that rents one does not come before the rest: of the 64 turns of a /32 a /40 has half, a /48 in it half of these, a
 * /56 a quarter of those, and a /64 one.
 */
function turnOf(network: string): string {
  if (network.length <= PREFIX_BYTES) return network
  let [turn, rest] = [0, 0]
  for (const [at, turns] of TURNS_IN_PREFIX) {
    // The rest of the wider octets is added, since many networks have zeros in the narrower ones.
    const octet = network.charCodeAt(at) + rest
    turn = turn * turns + (octet % turns)
    rest = Math.floor(octet / turns)
  }
  return `${network.slice(0, PREFIX_BYTES)} ${turn}`
}

/** First in, first out. */
class Waiting {
  #runs: (() => void)[] = []
  /** Those before it are taken. */
  #head = 0

  get length(): number {
    return this.#runs.length - this.#head
  }

  push(run: () => void): void {
    this.#runs.push(run)
  }

  take(): (() => void) | undefined {
    if (this.length === 0) return undefined
    const run = this.#runs[this.#head++]
    if (this.length === 0) {
      this.#runs = []
      this.#head = 0
    }
    return run
  }
}

/** A /32. An IPv4 address is as long. */
const PREFIX_BYTES = 4
/** The octets of /40, /48, /56 and /64, and which part of the turns of the prefix around it each has. */
const TURNS_IN_PREFIX = [
  [4, 2],
  [5, 2],
  [6, 4],
  [7, 4],
] as const
/** A millisecond or two, four with an RSA certificate (`reconnect-storm` in `bench/`). */
const PIECES_PER_TURN_MAX = 4
