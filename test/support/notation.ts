/**
 * The notation that conformance cases are written in: `⏎` is LF, `␍` CR, `␀` NUL, `⟦9f⟧` one octet in hexadecimal,
 * `⟨a×900⟩` a text repeated, `‖` a boundary between two messages of the transport. Every other character, also the
 * backslash, stands for itself in UTF-8.
 */

/** The messages that a text in this notation stands for. */
export function messagesOf(notation: string): Buffer[] {
  return notation.split('‖').map(octetsOf)
}

/** The octets of a text without boundaries. */
export function octetsOf(notation: string): Buffer {
  const repeated = notation.replace(/⟨([^×]+)×(\d+)⟩/gu, (_, text: string, times: string) =>
    text.repeat(Number(times)),
  )
  const parts = repeated.split(/(⟦[0-9a-f]{2}⟧)/u).map(part => {
    const octet = /^⟦([0-9a-f]{2})⟧$/u.exec(part)
    if (octet !== null) return Buffer.from(octet[1]!, 'hex')
    return Buffer.from(part.replaceAll('⏎', '\n').replaceAll('␍', '\r').replaceAll('␀', '\0'))
  })
  return Buffer.concat(parts)
}

/** The three ways in which every case is sent: each turns a text in this notation into messages. */
export const FRAGMENTATIONS: Readonly<Record<string, (notation: string) => Buffer[]>> = {
  'as written': messagesOf,
  'an octet at a time': notation =>
    Array.from(octetsOf(notation.replaceAll('‖', '')), octet => Buffer.of(octet)),
  'all at once': notation => [octetsOf(notation.replaceAll('‖', ''))],
}
