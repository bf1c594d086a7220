/**
 * An SMTP server in the test process that keeps what it is given: STARTTLS or TLS, logins, refusals, silence and cut
 * connections on command.
 */

import { type AddressInfo, createServer, type Socket } from 'node:net'
import { domainToASCII } from 'node:url'
import { SMTPServer } from 'smtp-server'
import { tlsFile, tlsPath } from './tls.ts'

export interface ReceivedMail {
  /** The envelope's, which alone says where the mail goes. The domain is in ASCII and lower case. */
  readonly from: string
  readonly to: readonly string[]
  /** The lines of the header as they were sent, unfolded. */
  readonly headers: readonly string[]
  readonly subject: string
  readonly text: string
  readonly isEncrypted: boolean
  readonly user?: string
}

export interface SmtpSinkOptions {
  /** `starttls` offers it, `tls` speaks it from the first byte; without either nothing is encrypted. */
  readonly security?: 'starttls' | 'tls'
  /** Mail without this login is refused. */
  readonly login?: { readonly user: string; readonly password: string }
  /** A reply code that refuses at MAIL; undefined takes the sender. */
  readonly onSender?: () => number | undefined
  /** At RCPT: refuses with a reply code; undefined takes it. */
  readonly onRecipient?: (address: string) => number | undefined
  /** Runs once DATA has begun. */
  readonly onData?: () => number | 'drop' | 'silence' | undefined
}

export interface SmtpSink {
  /** Such as `smtp://localhost:2525`, with the login in it. */
  readonly url: string
  /** PEM of the authority that signed the certificate, and the file that holds it. */
  readonly ca: string
  readonly caFile: string
  /** Everything taken so far, oldest first. */
  readonly mails: readonly ReceivedMail[]
  /** Connections made so far. */
  readonly connections: () => number
  /** Names of the logins tried so far. */
  readonly logins: () => readonly string[]
  /** Resolves with the first mail to the address that no earlier call has returned, now or when it comes. */
  mailTo(address: string): Promise<ReceivedMail>
  close(): Promise<void>
}

export async function startSmtpSink(options: SmtpSinkOptions = {}): Promise<SmtpSink> {
  const { security, login, onSender, onRecipient, onData } = options
  const mails: ReceivedMail[] = []
  const waiting: { address: string; resolve: (mail: ReceivedMail) => void }[] = []
  const unclaimed: ReceivedMail[] = []
  const sockets = new Set<Socket>()
  const logins: string[] = []
  let connections = 0

  const isTo = (mail: ReceivedMail, address: string) =>
    mail.to.some(recipient => recipient.toLowerCase() === address.toLowerCase())
  const take = (mail: ReceivedMail) => {
    mails.push(mail)
    const at = waiting.findIndex(({ address }) => isTo(mail, address))
    if (at === -1) unclaimed.push(mail)
    else waiting.splice(at, 1)[0]!.resolve(mail)
  }
  const server = new SMTPServer({
    secure: security === 'tls',
    key: tlsFile('server.key'),
    cert: tlsFile('server.crt'),
    disabledCommands: [...(security === 'starttls' ? [] : ['STARTTLS']), ...(login ? [] : ['AUTH'])],
    allowInsecureAuth: true,
    disableReverseLookup: true,
    lenientAddressParsing: true,
    closeTimeout: 10,
    onConnect(_session, done) {
      connections++
      done()
    },
    onAuth({ username = '', password }, _session, done) {
      logins.push(username)
      const isRight = username === login?.user && password === login?.password
      if (isRight) done(null, { user: username })
      else done(reply(535))
    },
    onMailFrom(_address, _session, done) {
      const code = onSender?.()
      done(code === undefined ? null : reply(code))
    },
    onRcptTo({ address }, _session, done) {
      const code = onRecipient?.(address)
      done(code === undefined ? null : reply(code))
    },
    onData(stream, session, done) {
      const act = onData?.()
      if (act === 'drop') {
        for (const socket of sockets) socket.destroy()
      }
      const chunks: Buffer[] = []
      stream.on('data', chunk => chunks.push(chunk))
      stream.on('end', () => {
        if (act === 'drop' || act === 'silence') return
        if (act !== undefined) return done(reply(act))
        const { mailFrom, rcptTo } = session.envelope
        take({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => withAsciiDomain(address)),
          isEncrypted: session.secure,
          ...(session.user === undefined ? {} : { user: session.user }),
          ...parse(Buffer.concat(chunks).toString('utf8')),
        })
        done()
      })
    },
  })
  server.on('error', () => {})
  server.server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.server.address() as AddressInfo
  const account =
    login === undefined ? '' : `${encodeURIComponent(login.user)}:${encodeURIComponent(login.password)}@`
  return {
    url: `${security === 'tls' ? 'smtps' : 'smtp'}://${account}localhost:${port}`,
    ca: tlsFile('ca.crt'),
    caFile: tlsPath('ca.crt'),
    mails,
    connections: () => connections,
    logins: () => logins,
    mailTo(address) {
      const at = unclaimed.findIndex(mail => isTo(mail, address))
      if (at !== -1) return Promise.resolve(unclaimed.splice(at, 1)[0]!)
      return new Promise(resolve => waiting.push({ address, resolve }))
    },
    close() {
      return new Promise(resolve => {
        server.close(resolve)
        for (const socket of sockets) socket.destroy()
      })
    },
  }
}

export interface SilentServer {
  readonly port: number
  /** Resolves when a client has connected. */
  readonly reached: Promise<void>
  close(): Promise<void>
}

/**
 * A server that takes connections and says nothing, for every protocol that waits for a greeting or an answer. Given
 * a `greeting`, it says that, and once spoken to the `line`, every 10 ms and without end.
 */
export async function startSilentServer(trickle?: { greeting: string; line: string }): Promise<SilentServer> {
  const sockets = new Set<Socket>()
  let onReached = () => {}
  const reached = new Promise<void>(resolve => {
    onReached = resolve
  })
  const server = createServer(socket => {
    onReached()
    sockets.add(socket.on('error', () => {}))
    if (trickle === undefined) return
    socket.write(trickle.greeting)
    socket.once('data', () => {
      const interval = setInterval(() => socket.write(trickle.line), 10)
      socket.once('close', () => clearInterval(interval))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    reached,
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
}

/** The six digits that a mail with a code holds. */
export function codeIn({ text }: Pick<ReceivedMail, 'text'>): string {
  const [code] = /\b\d{6}\b/.exec(text) ?? []
  if (code === undefined) throw new Error('the mail holds no code')
  return code
}

/** The server of the library shows a domain in Unicode, whatever was sent. */
function withAsciiDomain(address: string): string {
  const at = address.lastIndexOf('@')
  return `${address.slice(0, at)}@${domainToASCII(address.slice(at + 1))}`
}

function reply(responseCode: number): Error {
  return Object.assign(new Error('refused by the sink'), { responseCode })
}

function parse(raw: string): Pick<ReceivedMail, 'headers' | 'subject' | 'text'> {
  const end = raw.indexOf('\r\n\r\n')
  const headers = raw
    .slice(0, end)
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
  const encoding = headerOf(headers, 'Content-Transfer-Encoding')
  const text = decode(raw.slice(end + 4), encoding).replace(/\r\n/g, '\n')
  return { headers, subject: decodeWords(headerOf(headers, 'Subject')), text }
}

function headerOf(headers: readonly string[], name: string): string {
  const line = headers.find(candidate => candidate.toLowerCase().startsWith(`${name.toLowerCase()}:`))
  return line?.slice(name.length + 1).trim() ?? ''
}

function decode(text: string, encoding: string): string {
  if (encoding === 'base64') return Buffer.from(text, 'base64').toString('utf8')
  return encoding === 'quoted-printable' ? unquote(text.replace(/=\r\n/g, '')) : text
}

/** Encoded words (RFC 2047); white space between two of them is not part of the text. */
function decodeWords(text: string): string {
  return text
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/=\?utf-8\?([qb])\?([^?]*)\?=/gi, (_, form: string, word: string) =>
      form.toLowerCase() === 'b'
        ? Buffer.from(word, 'base64').toString('latin1')
        : unquote(word.replaceAll('_', ' '), 'latin1'),
    )
    .replace(/[\u0080-\u00ff]+/g, bytes => Buffer.from(bytes, 'latin1').toString('utf8'))
}

function unquote(text: string, encoding: BufferEncoding = 'utf8'): string {
  const bytes = text.replace(/=([\dA-F]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return Buffer.from(bytes, 'latin1').toString(encoding)
}
