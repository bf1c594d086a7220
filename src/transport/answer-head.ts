/**
 * The lines that the heads of many answers have in common, as one text each: a header that is written by itself costs a
 * call into uWebSockets (`bench/user.ts`).
 */

/** The common lines of one server's answers. */
export class AnswerHeads {
  readonly #everywhere: string
  /** By media type: there are as many as the code names. */
  readonly #plain = new Map<string, string>()
  readonly #noStore = new Map<string, string>()

  constructor(isTls: boolean) {
    this.#everywhere = isTls ? `${POLICIES}\r\nStrict-Transport-Security: ${HSTS}` : POLICIES
  }

  /** The value of `Content-Type` with all lines behind it. */
  typed(contentType: string, noStore: boolean): string {
    const heads = noStore ? this.#noStore : this.#plain
    const known = heads.get(contentType)
    if (known !== undefined) return known
    const head = `${contentType}\r\nAPI-Version: ${this.untyped(noStore)}`
    heads.set(contentType, head)
    return head
  }

  /** The value of `API-Version` with all lines behind it, for an answer without a body. */
  untyped(noStore: boolean): string {
    return noStore ? `${this.#everywhere}\r\nCache-Control: no-store` : this.#everywhere
  }
}

export const STATUS_LINES: Readonly<Record<number, string>> = {
  200: '200 OK',
  201: '201 Created',
  202: '202 Accepted',
  204: '204 No Content',
  302: '302 Found',
  304: '304 Not Modified',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  403: '403 Forbidden',
  404: '404 Not Found',
  405: '405 Method Not Allowed',
  409: '409 Conflict',
  410: '410 Gone',
  413: '413 Payload Too Large',
  415: '415 Unsupported Media Type',
  422: '422 Unprocessable Content',
  426: '426 Upgrade Required',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  503: '503 Service Unavailable',
}

/** A year, RFC 6797. */
export const HSTS = 'max-age=31536000'
const POLICIES = '1\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer'
