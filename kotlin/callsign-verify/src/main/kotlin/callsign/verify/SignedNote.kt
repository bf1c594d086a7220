/**
 * Signed notes (c2sp.org/signed-note): a text, a blank line, and one line per signature. Ed25519 ones (type 0x01) are
 * checked here; other types are parsed and left to the caller. Choice, where the specification leaves room: base64 is
 * canonical or the note is refused, and a known key whose signature fails spoils the whole note.
 */
package callsign.verify

/** A possible signer, from a verifier key (vkey). [publicKey] has 32 octets. */
internal class VerifierKey(val name: String, val keyId: UInt, val publicKey: ByteArray)

/** One signature line: [signature] is what follows the four octets of the key id. */
internal class NoteSignature(val name: String, val keyId: UInt, val signature: ByteArray)

/** An opened note. [text] ends in a newline and is what was signed; a key occurs once in [signatures]. */
internal class OpenedNote(
    val text: String,
    val signatures: List<NoteSignature>,
    val unverified: List<NoteSignature>,
)

/** A note's text and what its signature lines say. None of them is verified. */
internal class ReadNote(val text: String, val signatures: List<NoteSignature>)

/** The type of an Ed25519 signature over the text of the note. */
internal const val ED25519_TYPE: Int = 0x01

/** The first four octets of SHA-256(name || 0x0A || type || publicKey). */
internal fun keyIdOf(name: String, type: Int, publicKey: ByteArray): UInt =
    uint32At(sha256("$name\n".toByteArray(), byteArrayOf(type.toByte()), publicKey))

/**
 * Reads `name+keyid+base64(type || public key)`. Throws `KEY_INVALID` for any other form, another type than Ed25519, or
 * an id that is not the key's.
 */
internal fun parseVerifierKey(vkey: String): VerifierKey = parseTypedKey(vkey, setOf(ED25519_TYPE))

/** As [parseVerifierKey], for keys of 32 octets of any of these types. */
internal fun parseTypedKey(vkey: String, types: Set<Int>): VerifierKey {
    // The base64 may hold plus signs, so only the first two separate.
    val nameEnd = vkey.indexOf('+')
    val idEnd = if (nameEnd < 0) -1 else vkey.indexOf('+', nameEnd + 1)
    if (idEnd < 0) throw keyInvalid("verifier key has not three parts")
    val name = vkey.substring(0, nameEnd)
    if (!isKeyName(name)) throw keyInvalid("verifier key has no proper name")
    val octets = keyOctets(vkey.substring(idEnd + 1))
    val type = octets.firstOrNull()?.toInt()
    if (type == null || type !in types || octets.size != 1 + KEY_OCTETS)
        throw keyInvalid("verifier key is not one of Ed25519")
    val publicKey = octets.copyOfRange(1, octets.size)
    val keyId = keyIdOf(name, type, publicKey)
    if (hexId(keyId) != vkey.substring(nameEnd + 1, idEnd)) throw keyInvalid("verifier key has the id of another key")
    return VerifierKey(name, keyId, publicKey)
}

/**
 * Opens a note with the keys we know. Signatures of other keys are handed back unverified, identical lines once. Throws
 * `MALFORMED` for bad form, above 100 signatures or a million characters; `SIGNATURE_INVALID` when one of a known key
 * fails or there is none of a known key; `KEY_INVALID` when two verifiers share a signature's name and id.
 */
internal fun openNote(note: String, verifiers: List<VerifierKey>): OpenedNote {
    val (text, lines) = splitNote(note)
    val message = text.toByteArray()
    val signatures = mutableListOf<NoteSignature>()
    val unverified = mutableListOf<NoteSignature>()
    for (line in lines.distinct()) {
        val signature = parseSignatureLine(line)
        val verifier = findVerifier(verifiers, signature)
        if (verifier == null) {
            unverified += signature
            continue
        }
        if (!ed25519Verify(verifier.publicKey, message, signature.signature))
            throw LogException(LogErrorCode.SIGNATURE_INVALID, "signature of ${verifier.name} does not verify")
        if (signatures.none { it.name == signature.name && it.keyId == signature.keyId }) signatures += signature
    }
    if (signatures.isEmpty()) throw LogException(LogErrorCode.SIGNATURE_INVALID, "no signature of a known key")
    return OpenedNote(text, signatures, unverified)
}

/** As [openNote] of a text. Throws `MALFORMED` where the octets are not UTF-8. */
internal fun openNote(note: ByteArray, verifiers: List<VerifierKey>): OpenedNote = openNote(decodeUtf8(note), verifiers)

/** Reads a note and verifies nothing. Throws `MALFORMED` for bad form. */
internal fun readNote(note: String): ReadNote {
    val (text, lines) = splitNote(note)
    return ReadNote(text, lines.map(::parseSignatureLine))
}

/** Whether the name can stand in a signature line: not empty, no Unicode space, no plus, no control character. */
internal fun isKeyName(name: String): Boolean =
    name.isNotEmpty() && name.none { it == '+' || it in WHITE_SPACE } && isNoteText(name)

/** Whether a note can hold the text: Unicode without control characters below U+0020 but for the newline. */
internal fun isNoteText(text: String): Boolean {
    var at = 0
    while (at < text.length) {
        val character = text[at++]
        if (character < ' ' && character != '\n') return false
        if (!character.isSurrogate()) continue
        if (!character.isHighSurrogate() || at == text.length || !text[at++].isLowSurrogate()) return false
    }
    return true
}

/** Cuts a note at its last blank line; the text before it may hold blank lines of its own. */
private fun splitNote(note: String): Pair<String, List<String>> {
    if (note.length > NOTE_LENGTH_MAX) throw malformed("note has more than $NOTE_LENGTH_MAX characters")
    if (!isNoteText(note)) throw malformed("note has control characters or lone surrogates")
    val split = note.lastIndexOf("\n\n")
    if (split < 0) throw malformed("note has no blank line")
    val block = note.substring(split + 2)
    if (!block.endsWith('\n')) throw malformed("note does not end in a signature line")
    val lines = block.dropLast(1).split('\n')
    if (lines.size > SIGNATURES_MAX) throw malformed("note has more than $SIGNATURES_MAX signatures")
    return note.substring(0, split + 1) to lines
}

private fun parseSignatureLine(line: String): NoteSignature {
    val nameEnd = line.indexOf(' ', SIGNATURE_START.length)
    if (!line.startsWith(SIGNATURE_START) || nameEnd < 0) throw malformed("note has a line that is no signature")
    val name = line.substring(SIGNATURE_START.length, nameEnd)
    if (!isKeyName(name)) throw malformed("note has a signature without a proper name")
    val octets = decodeBase64(line.substring(nameEnd + 1))
    if (octets.size <= KEY_ID_OCTETS) throw malformed("note has a signature without octets")
    return NoteSignature(name, uint32At(octets), octets.copyOfRange(KEY_ID_OCTETS, octets.size))
}

private fun findVerifier(verifiers: List<VerifierKey>, signature: NoteSignature): VerifierKey? {
    val found = verifiers.filter { it.name == signature.name && it.keyId == signature.keyId }
    if (found.size > 1) throw keyInvalid("verifier key is there twice")
    return found.firstOrNull()
}

private fun keyOctets(text: String): ByteArray = try {
    decodeBase64(text)
} catch (_: LogException) {
    throw keyInvalid("verifier key is not canonical base64")
}

internal fun hexId(keyId: UInt): String = keyId.toString(16).padStart(8, '0')

/** As Go's reader has it; the specification asks for at least 16. */
private const val SIGNATURES_MAX = 100
private const val NOTE_LENGTH_MAX = 1_000_000
internal const val SIGNATURE_START: String = "\u2014 "
private const val KEY_ID_OCTETS = 4
private const val KEY_OCTETS = 32

/** Unicode's White_Space, spelt out: `Char.isWhitespace` has other members. */
private val WHITE_SPACE: Set<Char> =
    ('\t'..'\r').toSet() + ' ' + '\u0085' + '\u00a0' + '\u1680' + ('\u2000'..'\u200a') + '\u2028' + '\u2029' +
        '\u202f' + '\u205f' + '\u3000'
