/** Mail, against an SMTP server that encrypts, refuses, falls silent and hangs up. */

import t, { type Test } from 'tap'
import { type MailOptions, MailSender, parseMailAddress } from '../../src/delivery/mail.ts'
import {
  type SmtpSink,
  type SmtpSinkOptions,
  startSilentServer,
  startSmtpSink,
} from '../support/smtp-sink.ts'

const FROM = 'Callsign <no-reply@callsign.example>'

async function start(t: Test, options: SmtpSinkOptions = {}): Promise<SmtpSink> {
  const sink = await startSmtpSink(options)
  t.teardown(() => sink.close())
  return sink
}

function senderTo(t: Test, url: string, options: Partial<MailOptions> = {}): MailSender {
  const sender = new MailSender({ url, from: FROM, timeoutMs: 5_000, ...options })
  t.teardown(() => sender.close())
  return sender
}

function mailTo(to: string) {
  return { to, subject: '123456 is your code', text: 'Your code is 123456.\n' }
}

t.test('a mail arrives with its sender, recipient, subject and words', async t => {
  const sink = await start(t)
  const text = `Mã của bạn là 123456.\n\n.\nFrom here on: “ünï” ${'x'.repeat(2_000)}\n`
  const subject = `123456 là mã Callsign của bạn – ${'ß'.repeat(100)}`
  t.same(await senderTo(t, sink.url).send({ to: 'Q@Example.com', subject, text }), { kind: 'sent' })
  const mail = await sink.mailTo('Q@Example.com')
  t.equal(mail.from, 'no-reply@callsign.example')
  t.same(mail.to, ['Q@example.com'])
  t.equal(mail.subject, subject)
  t.equal(mail.text, text)
  t.ok(mail.headers.includes('From: Callsign <no-reply@callsign.example>'))
  t.ok(mail.headers.includes('To: Q@example.com'))
  t.ok(mail.headers.includes('Auto-Submitted: auto-generated'))
  t.ok(mail.headers.includes('Content-Type: text/plain; charset=utf-8'), 'no HTML part')
})

t.test('mails at once share a few connections', async t => {
  const sink = await start(t)
  const sender = senderTo(t, sink.url)
  const outcomes = await Promise.all(
    Array.from({ length: 30 }, (_, at) => sender.send(mailTo(`q${at}@example.com`))),
  )
  t.ok(outcomes.every(({ kind }) => kind === 'sent'))
  t.equal(new Set(sink.mails.map(({ to }) => to[0])).size, 30)
  t.ok(sink.connections() <= 5)
})

for (const security of ['starttls', 'tls'] as const) {
  t.test(`with ${security} the mail is encrypted and the login sent`, async t => {
    const sink = await start(t, { security, login: { user: 'mailer', password: 'p@ss:/word' } })
    t.same(await senderTo(t, sink.url, { ca: sink.ca }).send(mailTo('q@example.com')), { kind: 'sent' })
    t.match(sink.mails, [{ isEncrypted: true, user: 'mailer' }])
  })

  t.test(`with ${security} and a certificate that is not trusted nothing is sent`, async t => {
    const sink = await start(t, { security })
    const outcome = await senderTo(t, sink.url).send(mailTo('q@example.com'))
    t.equal(outcome.kind, 'retry')
    t.equal(sink.mails.length, 0)
  })
}

t.test('where TLS is insisted on, a server without it gets no mail', async t => {
  const sink = await start(t)
  const outcome = await senderTo(t, `${sink.url}?requireTLS=true`).send(mailTo('q@example.com'))
  t.same(outcome, { kind: 'retry', reason: 'tls' })
  t.equal(sink.mails.length, 0)
})

/** An address of this machine that does not say that it is one. */
const elsewhere = (url: string) => url.replace('localhost', '0.0.0.0')

t.test('a password goes to another machine only encrypted, unless the URL allows more', async t => {
  const login = { user: 'mailer', password: 'secret' }
  const plain = await start(t, { login })
  const forgoing = ['', '?ignoreTLS=true', '?opportunisticTLS=true', '?requireTLS=false', '?allowPlain=yes']
  for (const query of forgoing) {
    const outcome = await senderTo(t, `${elsewhere(plain.url)}${query}`).send(mailTo('q@example.com'))
    t.same(outcome, { kind: 'retry', reason: 'tls' }, query)
  }
  t.same(plain.logins(), [], 'no password came')
  const allowed = senderTo(t, `${elsewhere(plain.url)}?allowPlain=true`)
  t.same(await allowed.send(mailTo('q@example.com')), { kind: 'sent' })
  t.same(await senderTo(t, plain.url).send(mailTo('q@example.com')), { kind: 'sent' }, 'loopback')

  const encrypting = await start(t, { security: 'starttls', login })
  const url = `${elsewhere(encrypting.url)}?tls.servername=localhost`
  t.same(await senderTo(t, url, { ca: encrypting.ca }).send(mailTo('q@example.com')), { kind: 'sent' })
  t.match(encrypting.mails, [{ isEncrypted: true, user: 'mailer' }])

  const open = await start(t)
  t.same(
    await senderTo(t, elsewhere(open.url)).send(mailTo('q@example.com')),
    { kind: 'sent' },
    'no password',
  )
})

t.test('a wrong password is ours to mend: the mail stays good', async t => {
  const sink = await start(t, { login: { user: 'mailer', password: 'right' } })
  const outcome = await senderTo(t, sink.url.replace('right', 'wrong')).send(mailTo('q@example.com'))
  t.same(outcome, { kind: 'retry', reason: 'smtp-auth' })
})

t.test('a recipient that is greylisted is tried later, and taken then', async t => {
  let tries = 0
  const sink = await start(t, { onRecipient: () => (++tries === 1 ? 450 : undefined) })
  const sender = senderTo(t, sink.url)
  t.same(await sender.send(mailTo('q@example.com')), { kind: 'retry', reason: 'smtp-450', isOfMessage: true })
  t.same(await sender.send(mailTo('q@example.com')), { kind: 'sent' })
})

t.test('an unknown recipient is refused, and the next mail goes through', async t => {
  const sink = await start(t, { onRecipient: to => (to.startsWith('nobody@') ? 550 : undefined) })
  const sender = senderTo(t, sink.url)
  t.same(await sender.send(mailTo('nobody@example.com')), { kind: 'refused', reason: 'smtp-550' })
  t.same(await sender.send(mailTo('q@example.com')), { kind: 'sent' })
})

/** The next mail may get through. */
const RETRIED = { kind: 'retry', isOfMessage: true } as const

t.test('a mail that is refused after its last line follows the code too', async t => {
  const codes = [554, 452, 421, 503]
  const sink = await start(t, { onData: () => codes.shift() })
  const sender = senderTo(t, sink.url)
  t.same(await sender.send(mailTo('q@example.com')), { kind: 'refused', reason: 'smtp-554' })
  t.same(await sender.send(mailTo('q@example.com')), { ...RETRIED, reason: 'smtp-452' })
  t.same(await sender.send(mailTo('q@example.com')), { ...RETRIED, reason: 'smtp-421' })
  t.same(await sender.send(mailTo('q@example.com')), { ...RETRIED, reason: 'smtp-503' })
  t.same(await sender.send(mailTo('q@example.com')), { kind: 'sent' })
})

t.test('a server that refuses our own address has not refused the mail', async t => {
  const sink = await start(t, { onSender: () => 553 })
  const outcome = await senderTo(t, sink.url).send(mailTo('q@example.com'))
  t.same(outcome, { kind: 'retry', reason: 'smtp-553' })
})

t.test('a connection cut in the middle of a mail is a retry, made once by us', async t => {
  const acts = ['drop', undefined] as const
  let tries = 0
  const sink = await start(t, { onData: () => acts[tries++] })
  const sender = senderTo(t, sink.url)
  const long = { ...mailTo('q@example.com'), text: 'x'.repeat(1_000_000) }
  t.equal((await sender.send(long)).kind, 'retry')
  t.equal(tries, 1, 'the library did not repeat it')
  t.same(await sender.send(mailTo('q@example.com')), { kind: 'sent' })
})

t.test('silence before the greeting and after the last line is a timeout', async t => {
  const silent = await startSilentServer()
  t.teardown(() => silent.close())
  const timeout = { kind: 'retry', reason: 'timeout' }
  t.same(
    await senderTo(t, `smtp://127.0.0.1:${silent.port}`, { timeoutMs: 100 }).send(mailTo('q@example.com')),
    timeout,
  )
  const sink = await start(t, { onData: () => 'silence' })
  t.same(await senderTo(t, sink.url, { timeoutMs: 100 }).send(mailTo('q@example.com')), timeout)
})

t.test('a server that talks without coming to an end is a timeout too', async t => {
  const server = await startSilentServer({ greeting: '220 hello\r\n', line: '250-more\r\n' })
  t.teardown(() => server.close())
  const sender = senderTo(t, `smtp://127.0.0.1:${server.port}`, { timeoutMs: 100 })
  t.same(await sender.send(mailTo('q@example.com')), { kind: 'retry', reason: 'timeout' })
})

t.test('a server that is not there is a retry', async t => {
  const gone = await startSilentServer()
  await gone.close()
  const outcome = await senderTo(t, `smtp://127.0.0.1:${gone.port}`).send(mailTo('q@example.com'))
  t.equal(outcome.kind, 'retry')
  t.notMatch(JSON.stringify(outcome), /127\.0\.0\.1|example/, 'the reason names no address')
})

t.test('every address that a sign-in form takes is the envelope’s recipient, to the letter', async t => {
  const sink = await start(t)
  const sender = senderTo(t, sink.url)
  const addresses = [
    "o'brien+tag@example.com",
    "!#$%&'*+/=?^_`{|}~-@example.com",
    'CaseD@eXample.COM',
    'xn--q@xn--bcher-kva.example',
    'q@localhost',
    `${'l'.repeat(64)}@${'d'.repeat(63)}.example`,
    '=?utf-8?q?a?=@example.com',
  ]
  for (const address of addresses) t.same(await sender.send(mailTo(address)), { kind: 'sent' }, address)
  t.same(
    sink.mails.map(({ to }) => to),
    // Domains have no case; the local part has.
    addresses.map(address => [address.replace(/@.*/, domain => domain.toLowerCase())]),
  )
})

t.test('a local part that SMTP wants in quotes gets them, and stays the same mailbox', async t => {
  const sink = await start(t)
  t.same(await senderTo(t, sink.url).send(mailTo('.a..b.@example.com')), { kind: 'sent' })
  t.same(sink.mails[0]!.to, ['".a..b."@example.com'])
})

t.test('a text with several addresses, or none, is refused without a word to the server', async t => {
  const sink = await start(t)
  const sender = senderTo(t, sink.url)
  const bad = [
    '',
    'q',
    '@example.com',
    'q@',
    'a@example.com, b@evil.example',
    'a@example.com;b@evil.example',
    'Q <q@example.com>',
    '<q@example.com>',
    '"q@evil.example"@example.com',
    'q@evil.example(c)@example.com',
    'q(comment)@example.com',
    'q@example.com\r\nRCPT TO:<b@evil.example>',
    'q@example.com\n',
    'q\u0000@example.com',
    'q\u200b@example.com',
    'q@exa\u00adple.com',
    'q@bücher.example',
    'q@[127.0.0.1]',
    'q q@example.com',
    `q@${'d'.repeat(64)}.example`,
    `q@${'d.'.repeat(125)}example`,
    `${'l'.repeat(65)}@example.com`,
  ]
  for (const to of bad) {
    t.same(await sender.send(mailTo(to)), { kind: 'refused', reason: 'bad-recipient' }, JSON.stringify(to))
  }
  t.equal(sink.connections(), 0)
})

t.test('neither subject, words nor the sender’s name can add a header or a recipient', async t => {
  const sink = await start(t)
  const evil = 'x\r\nBcc: evil@evil.example\r\nX-Evil: 1\r\n\r\n<b>body</b>'
  const sender = senderTo(t, sink.url, {
    from: '"Evil, \\" Bcc: a@evil.example" <no-reply@callsign.example>',
  })
  t.same(await sender.send({ to: 'q@example.com', subject: evil, text: `${evil}\r\n.\r\nRSET\r\n` }), {
    kind: 'sent',
  })
  const [mail] = sink.mails
  t.same(mail!.to, ['q@example.com'])
  t.equal(mail!.from, 'no-reply@callsign.example')
  const names = mail!.headers.map(line => line.split(':')[0]).sort()
  t.same(names, [
    'Auto-Submitted',
    'Content-Transfer-Encoding',
    'Content-Type',
    'Date',
    'From',
    'MIME-Version',
    'Message-ID',
    'Subject',
    'To',
  ])
  t.match(mail!.text, /RSET/)
})

t.test('the words are never taken for a file or an address to fetch', async t => {
  const sink = await start(t)
  const text = Object.assign(new String('x'), { path: '/etc/passwd' })
  const outcome = await senderTo(t, sink.url).send({
    to: 'q@example.com',
    subject: 's',
    text: text as unknown as string,
  })
  t.not(outcome.kind, 'sent')
  t.equal(sink.mails.length, 0)
})

t.test('the sender is an address, with or without a name', async t => {
  t.same(parseMailAddress('a@b.example'), { name: '', address: 'a@b.example' })
  t.same(parseMailAddress('Callsign <a@b.example>'), { name: 'Callsign', address: 'a@b.example' })
  t.same(parseMailAddress('"Callsign, Ltd" <a@b.example>'), { name: 'Callsign, Ltd', address: 'a@b.example' })
  for (const text of ['', 'Callsign', 'Callsign <>', 'a@b@c', 'X\nBcc: y <a@b.example>', 'a@b.example <c']) {
    t.throws(() => parseMailAddress(text), text)
  }
})

t.test('closing ends a delivery under way', async t => {
  let onDelivery = () => {}
  const underWay = new Promise<void>(resolve => {
    onDelivery = resolve
  })
  const sink = await start(t, {
    onData() {
      onDelivery()
      return 'silence'
    },
  })
  const sender = senderTo(t, sink.url, { timeoutMs: 60_000 })
  const sending = sender.send(mailTo('q@example.com'))
  await underWay
  sender.close()
  t.equal((await sending).kind, 'retry')
})
