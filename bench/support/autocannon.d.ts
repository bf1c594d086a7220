/** The part of autocannon that the bench uses, which comes without types. */
declare module 'autocannon' {
  namespace autocannon {
    interface Request {
      readonly method: 'GET' | 'POST'
      readonly path: string
      readonly headers?: Readonly<Record<string, string>>
      readonly body?: string
    }
    interface Client {
      readonly requestIterator: { setRequests(requests: readonly Request[]): void }
    }
    interface Options {
      readonly url: string
      readonly connections: number
      readonly pipelining: number
      /** Seconds. */
      readonly duration: number
      /** Milliseconds between samples. */
      readonly sampleInt: number
      readonly setupClient: (client: Client) => void
    }
    interface Result {
      readonly duration: number
      readonly requests: { readonly total: number }
      /** Milliseconds. */
      readonly latency: { readonly p50: number; readonly p99: number }
      readonly errors: number
      readonly timeouts: number
      readonly non2xx: number
    }
  }
  function autocannon(options: autocannon.Options): Promise<autocannon.Result>
  export = autocannon
}
