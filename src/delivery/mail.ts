/**
 * Mail by SMTP, on nodemailer: pooled connections, plain text only, one recipient per message.
 *
 * The recipient is checked here once more, against the grammar of the HTML standard's email input, and is handed over
 * as an object and as the envelope: nodemailer's address parser, which has sent mail to other domains than written
 * (nodemailer/nodemailer#1848), never sees a text of ours.
 */

import { type DeliveryOutcome, reasonWord } from './outcome.ts'

export interface MailOptions {
  /**
   * `smtp://user:password@host:587` or `smtps://` for TLS from the first byte. `smtp://` uses STARTTLS where it is offered;
   * `?requireTLS=true` insists on it, and so does a password (see `needsStartTls`).
   */
  readonly url: string
  /** `a@b.example` or `Name <a@b.example>`. */
  readonly from: string
  /** For connecting, for the greeting and for each silence after it; three times this for a whole message. */
  readonly timeoutMs?: number
  /** PEM of the authority to trust instead of the machine's list. */
  readonly ca?: string
}

export interface Mail {
  readonly to: string
  readonly subject: string
  readonly text: string
}

export interface MailAddress {
  /** Empty for none. */
  readonly name: string
  readonly address: string
}

/** Sends until `close`. */
export class MailSender {
  readonly #options: MailOptions
  /** Made by the first message: the library is loaded for it. */
  #transport: ReturnType<typeof openTransport> | undefined
  #isClosed = false
  readonly #from: MailAddress
  readonly #deadlineMs: number

  /** Throws when `from` holds no address. */
  constructor(options: MailOptions) {
    const { from, timeoutMs = TIMEOUT_MS } = options
    this.#options = options
    this.#from = parseMailAddress(from)
    this.#deadlineMs = 3 * timeoutMs
  }

  /** Never rejects. `sent` means that the server took the message, not that anyone has read it. */
  async send({ to, subject, text }: Mail): Promise<DeliveryOutcome> {
    if (!isMailAddress(to)) return { kind: 'refused', reason: 'bad-recipient' }
    try {
      const transport = await this.#open()
      await transport.sendMail({
        envelope: { from: this.#from.address, to },
        from: this.#from,
        to: { name: '', address: to },
        subject,
        text,
        // No out-of-office reply should answer a code (RFC 3834, section 5).
        headers: { 'Auto-Submitted': 'auto-generated' },
        // The timeouts see silence; a server that trickles is seen by this alone.
        signal: AbortSignal.timeout(this.#deadlineMs),
      })
      return { kind: 'sent' }
    } catch (error) {
      return outcomeOf(error)
    }
  }

  /** Connects and signs in, and sends nothing. Never rejects; `sent` means that the server would take mail. */
  async check(): Promise<DeliveryOutcome> {
    try {
      const transport = await this.#open()
      await transport.verify()
      return { kind: 'sent' }
    } catch (error) {
      return outcomeOf(error)
    }
  }

  /** Ends every connection, also one that is delivering. */
  close(): void {
    this.#isClosed = true
    this.#transport?.then(transport => transport.close({ force: true })).catch(() => undefined)
  }

  #open(): ReturnType<typeof openTransport> {
    if (this.#isClosed) throw new Error('the sender is closed')
    this.#transport ??= openTransport(this.#options)
    return this.#transport
  }
}

/**
 * Whether the sender insists on STARTTLS: a password leaves the machine only encrypted, unless the URL has `allowPlain=true`
 * (contract 0.1, "1 Mail"). A server that offers no STARTTLS then gets neither login nor mail.
 */
export function needsStartTls(url: string): boolean {
  const { protocol, hostname, username, password, searchParams } = new URL(url)
  if (protocol === 'smtps:') return false
  if (searchParams.get('requireTLS') === 'true') return true
  const hasLogin = username !== '' || password !== ''
  return hasLogin && !LOOPBACK.test(hostname) && searchParams.get('allowPlain') !== 'true'
}

function transportUrl(text: string): string {
  const url = new URL(text)
  // Settings of the URL win over those beside it; this one wins over `ignoreTLS` and `opportunisticTLS`.
  if (needsStartTls(text)) url.searchParams.set('requireTLS', 'true')
  return url.href
}

async function openTransport({ url, timeoutMs = TIMEOUT_MS, ca }: MailOptions) {
  const { createTransport } = await import('nodemailer')
  return createTransport({
    url: transportUrl(url),
    pool: true,
    // The outbox repeats what failed, and knows for how long that makes sense.
    maxRequeues: 0,
    dnsTimeout: timeoutMs,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(ca === undefined ? {} : { tls: { ca } }),
  })
}

/** Reads `a@b.example` or `Name <a@b.example>`; throws when there is no address in it. */
export function parseMailAddress(text: string): MailAddress {
  const [, name = '', address = text.trim()] = /^([^<>]*)<([^<>]*)>\s*$/.exec(text) ?? []
  if (!isMailAddress(address) || HAS_CONTROLS.test(name)) throw new Error('the sender is not a mail address')
  return { name: name.trim().replace(/^"(.*)"$/, '$1'), address }
}

function isMailAddress(text: string): boolean {
  return text.length <= 254 && ADDRESS_FORM.test(text)
}

function outcomeOf(error: unknown): DeliveryOutcome {
  const { code, command, responseCode } = error as SmtpError
  if (code === 'EAUTH' || code === 'ENOAUTH') return { kind: 'retry', reason: 'smtp-auth' }
  if (code === 'ETLS') return { kind: 'retry', reason: 'tls' }
  if (responseCode !== undefined) {
    // Only these two answer for a recipient and a message. A 5xx before them is about the connection, our login or
    // our own address; a 503 says that the session was in the wrong state for any command.
    const isAboutMail = command === 'RCPT TO' || command === 'DATA'
    const isForGood = isAboutMail && responseCode >= 500 && responseCode !== 503
    const reason = `smtp-${responseCode}`
    if (isForGood) return { kind: 'refused', reason }
    return { kind: 'retry', reason, ...(isAboutMail ? { isOfMessage: true } : {}) }
  }
  if (code === 'ETIMEDOUT' || code === 'EABORT') return { kind: 'retry', reason: 'timeout' }
  return { kind: 'retry', reason: reasonWord(code, 'network') }
}

/** Fields that nodemailer puts on an error: its own code, and the server's reply with the refused command. */
interface SmtpError {
  readonly code?: string
  readonly command?: string
  readonly responseCode?: number
}

const TIMEOUT_MS = 10_000
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/
/** The HTML standard's email input, which has no comments, quotes, spaces or characters beyond ASCII. */
const ADDRESS_FORM =
  /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*$/i
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for.
const HAS_CONTROLS = /[\u0000-\u001f\u007f]/
