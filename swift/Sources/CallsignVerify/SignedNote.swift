// Signed notes (c2sp.org/signed-note): a text, a blank line, and one line per signature. Ed25519 ones (type 0x01) are checked
// here; other types are parsed and left to the caller. Choice, where the specification leaves room: base64 is canonical or the
// note is refused, and a known key whose signature fails spoils the whole note.

/// A possible signer, from a verifier key (vkey). `publicKey` has 32 octets.
struct VerifierKey: Sendable {
    let name: String
    let keyId: UInt32
    let publicKey: [UInt8]
}

/// One signature line: `signature` is what follows the four octets of the key id.
struct NoteSignature: Sendable {
    let name: String
    let keyId: UInt32
    let signature: [UInt8]

    func isOf(_ name: String, _ keyId: UInt32) -> Bool { self.keyId == keyId && isSame(self.name, name) }
}

/// An opened note. `text` ends in a newline and is what was signed; a key occurs once in `signatures`.
struct OpenedNote: Sendable {
    let text: String
    let signatures: [NoteSignature]
    let unverified: [NoteSignature]
}

/// A note's text and what its signature lines say. None of them is verified.
struct ReadNote: Sendable {
    let text: String
    let signatures: [NoteSignature]
}

/// The type of an Ed25519 signature over the text of the note.
let ed25519Type: UInt8 = 0x01

/// The first four octets of SHA-256(name || 0x0A || type || publicKey).
func keyIdOf(_ name: String, _ type: UInt8, _ publicKey: [UInt8]) -> UInt32 {
    uint32(sha256(Array("\(name)\n".utf8), [type], publicKey))
}

/// Reads `name+keyid+base64(type || public key)`. Throws `keyInvalid` for any other form, another type than Ed25519, or an id
/// that is not the key's.
func parseVerifierKey(_ vkey: String) throws(LogError) -> VerifierKey { try parseTypedKey(vkey, types: [ed25519Type]) }

/// As `parseVerifierKey`, for keys of 32 octets of any of these types.
func parseTypedKey(_ vkey: String, types: Set<UInt8>) throws(LogError) -> VerifierKey {
    // The base64 may hold plus signs, so only the first two separate.
    let parts = Array(vkey.utf8).split(separator: UInt8(ascii: "+"), maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw .keyInvalid("verifier key has not three parts") }
    let name = textOf(parts[0])
    guard isKeyName(name) else { throw .keyInvalid("verifier key has no proper name") }
    guard let octets = base64Octets(textOf(parts[2])) else { throw .keyInvalid("verifier key is not canonical base64") }
    guard let type = octets.first, types.contains(type), octets.count == 1 + keyOctets else {
        throw .keyInvalid("verifier key is not one of Ed25519")
    }
    let publicKey = Array(octets.dropFirst())
    let keyId = keyIdOf(name, type, publicKey)
    guard parts[1].elementsEqual(hexId(keyId).utf8) else { throw .keyInvalid("verifier key has the id of another key") }
    return VerifierKey(name: name, keyId: keyId, publicKey: publicKey)
}

/// Opens a note with the keys we know. Signatures of other keys are handed back unverified, identical lines once. Throws
/// `malformed` for bad form, above 100 signatures or a million UTF-16 units; `signatureInvalid` when one of a known key fails or
/// there is none of a known key; `keyInvalid` when two verifiers share a signature's name and id.
func openNote(_ note: String, _ verifiers: [VerifierKey]) throws(LogError) -> OpenedNote {
    let (text, lines) = try splitNote(note)
    var signatures: [NoteSignature] = []
    var unverified: [NoteSignature] = []
    var seen: Set<ArraySlice<UInt8>> = []
    for line in lines where seen.insert(line).inserted {
        let signature = try parseSignatureLine(line)
        guard let verifier = try findVerifier(verifiers, signature) else {
            unverified.append(signature)
            continue
        }
        guard ed25519Verify(publicKey: verifier.publicKey, message: text, signature: signature.signature) else {
            throw .signatureInvalid("signature of \(verifier.name) does not verify")
        }
        if !signatures.contains(where: { $0.isOf(signature.name, signature.keyId) }) { signatures.append(signature) }
    }
    if signatures.isEmpty { throw .signatureInvalid("no signature of a known key") }
    return OpenedNote(text: textOf(text), signatures: signatures, unverified: unverified)
}

/// As `openNote` of a text. Throws `malformed` where the octets are not UTF-8.
func openNote(octets: [UInt8], _ verifiers: [VerifierKey]) throws(LogError) -> OpenedNote {
    try openNote(decodeUTF8(octets), verifiers)
}

/// Reads a note and verifies nothing. Throws `malformed` for bad form.
func readNote(_ note: String) throws(LogError) -> ReadNote {
    let (text, lines) = try splitNote(note)
    return ReadNote(text: textOf(text), signatures: try lines.map(parseSignatureLine))
}

/// Whether the name can stand in a signature line: not empty, no Unicode space, no plus, no control character.
func isKeyName(_ name: String) -> Bool {
    !name.isEmpty && isNoteText(name.utf8) && name.unicodeScalars.allSatisfy { $0 != "+" && !isWhiteSpace($0) }
}

/// Whether a note can hold the text: no control characters below U+0020 but for the newline.
func isNoteText(_ octets: some Sequence<UInt8>) -> Bool { octets.allSatisfy { $0 >= 0x20 || $0 == newline } }

/// Cuts a note at its last blank line; the text before it may hold blank lines of its own.
private func splitNote(_ note: String) throws(LogError) -> (text: [UInt8], lines: [ArraySlice<UInt8>]) {
    if note.utf16.count > noteLengthMax { throw .malformed("note has more than \(noteLengthMax) characters") }
    let octets = Array(note.utf8)
    guard isNoteText(octets) else { throw .malformed("note has control characters") }
    guard let split = octets.indices.dropLast().last(where: { octets[$0] == newline && octets[$0 + 1] == newline }) else {
        throw .malformed("note has no blank line")
    }
    let block = octets[(split + 2)...]
    guard block.last == newline else { throw .malformed("note does not end in a signature line") }
    let lines = linesOf(block.dropLast())
    if lines.count > signaturesMax { throw .malformed("note has more than \(signaturesMax) signatures") }
    return (Array(octets[...split]), lines)
}

private func parseSignatureLine(_ line: ArraySlice<UInt8>) throws(LogError) -> NoteSignature {
    guard let rest = after(signatureStart, in: line), let nameEnd = rest.firstIndex(of: UInt8(ascii: " ")) else {
        throw .malformed("note has a line that is no signature")
    }
    let name = textOf(rest[..<nameEnd])
    guard isKeyName(name) else { throw .malformed("note has a signature without a proper name") }
    let octets = try decodeBase64(textOf(rest[(nameEnd + 1)...]))
    guard octets.count > keyIdOctets else { throw .malformed("note has a signature without octets") }
    return NoteSignature(name: name, keyId: uint32(octets), signature: Array(octets[keyIdOctets...]))
}

private func findVerifier(_ verifiers: [VerifierKey], _ signature: NoteSignature) throws(LogError) -> VerifierKey? {
    let found = verifiers.filter { signature.isOf($0.name, $0.keyId) }
    if found.count > 1 { throw .keyInvalid("verifier key is there twice") }
    return found.first
}

/// The big-endian uint32 in the first four octets.
private func uint32(_ octets: [UInt8]) -> UInt32 { UInt32(bigEndian(octets, count: keyIdOctets)) }

func hexId(_ keyId: UInt32) -> String { hex(bigEndianOctets(UInt64(keyId), count: keyIdOctets)) }

/// Unicode's White_Space, spelt out, so that no version of Unicode on a system gives other names.
private func isWhiteSpace(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x09...0x0d, 0x20, 0x85, 0xa0, 0x1680, 0x2000...0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000: true
    default: false
    }
}

/// As Go's reader has it; the specification asks for at least 16.
private let signaturesMax = 100
private let noteLengthMax = 1_000_000
let signatureStart = "\u{2014} "
private let keyIdOctets = 4
private let keyOctets = 32
