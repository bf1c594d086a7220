/** A `fetch` that holds back requests or answers of a test's choice, as a slow network does, or lets them fail. */

export class HeldFetch {
  readonly #holds = new Set<Hold>()

  readonly fetch: typeof fetch = async (url, init) => {
    const request = `${init?.method ?? 'GET'} ${new URL(String(url)).pathname}`
    const hold = [...this.#holds].find(one => one.path.test(request))
    if (hold === undefined) return fetch(url, init)
    this.#holds.delete(hold)
    if (hold.what === 'failure') return new Response(undefined, { status: 500 })
    if (hold.what === 'answer') {
      const answer = await fetch(url, init)
      await hold.wait()
      return answer
    }
    await hold.wait()
    return fetch(url, init)
  }

  /** Holds the next request that matches, such as `/POST .*\/join$/`. */
  request(path: RegExp): Hold {
    return this.#add(new Hold('request', path))
  }

  /** Holds the answer to the next request that matches. */
  answer(path: RegExp): Hold {
    return this.#add(new Hold('answer', path))
  }

  /** The next request that matches does not reach the server, and fails without being tried again. */
  failure(path: RegExp): void {
    this.#add(new Hold('failure', path))
  }

  #add(hold: Hold): Hold {
    this.#holds.add(hold)
    return hold
  }
}

export class Hold {
  readonly what: 'request' | 'answer' | 'failure'
  readonly path: RegExp
  /** Resolves when there is something to hold. */
  readonly came: Promise<void>
  #onCame!: () => void
  readonly #let: Promise<void>
  #release!: () => void

  constructor(what: Hold['what'], path: RegExp) {
    this.what = what
    this.path = path
    this.came = new Promise(resolve => {
      this.#onCame = resolve
    })
    this.#let = new Promise(resolve => {
      this.#release = resolve
    })
  }

  wait(): Promise<void> {
    this.#onCame()
    return this.#let
  }

  release(): void {
    this.#release()
  }
}
