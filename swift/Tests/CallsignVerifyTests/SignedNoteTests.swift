import TestSupport
import XCTest

@testable import CallsignVerify

final class SignedNoteTests: XCTestCase {
    private func vectors() throws -> JSONValue { try readVectors("signed-note") }

    /// The first of the notes that verify, with the key that they verify by.
    private func signed() throws -> (note: String, verifiers: [VerifierKey]) {
        let signed = try known(vectors().list("verify").first, "verify")
        return (try signed.text("note"), [try parseVerifierKey(signed.text("vkey"))])
    }

    func testPublishedEd25519KeysAreReadAndThoseOfOtherTypesRefused() throws {
        for key in try vectors().list("keys") {
            let vkey = try key.text("vkey")
            let type = UInt8(try key.number("type"))
            let id = try key.text("key_id_hex")
            if type != ed25519Type {
                XCTAssertEqual(logErrorCode { _ = try parseVerifierKey(vkey) }, .keyInvalid)
                let base64 = vkey.split(separator: "+", omittingEmptySubsequences: false).dropFirst(2).joined(separator: "+")
                let publicKey = Array(try fromBase64(base64).dropFirst())
                XCTAssertEqual(hexId(keyIdOf(try key.text("name"), type, publicKey)), id)
                continue
            }
            let verifier = try parseVerifierKey(vkey)
            XCTAssertEqual(verifier.name, try key.text("name"))
            XCTAssertEqual(hexId(verifier.keyId), id)
            XCTAssertEqual(hex(verifier.publicKey), try key.text("public_key_hex"))
        }
    }

    func testPublishedKeyIdsComeOut() throws {
        for key in try vectors().list("key_id") {
            let id = keyIdOf(try key.text("name"), UInt8(try key.number("type")), try key.hex("public_key_hex"))
            XCTAssertEqual(hexId(id), try key.text("key_id_hex"))
        }
    }

    func testPublishedInvalidKeysAreRefused() throws {
        for key in try vectors().list("invalid_vkeys") {
            let vkey = try key.text("vkey")
            let why = try key.text("why")
            XCTAssertEqual(logErrorCode { _ = try parseVerifierKey(vkey) }, .keyInvalid, why)
        }
    }

    func testEveryPartOfAKeyAndAKeyWithACharacterMovedOnIsRefused() throws {
        let keys = try vectors().list("keys")
        let key = try known(keys.first { try $0.number("type") == Int(ed25519Type) }, "keys")
        let vkey = Array(try key.text("vkey").utf8)
        let parts = vkey.indices.flatMap { from in (from...vkey.count).map { vkey[from..<$0] } }.filter { $0.count < vkey.count }
        let moved = vkey.indices.map { vkey[..<$0] + [vkey[$0] + 1] + vkey[($0 + 1)...] }
        for changed in (parts + moved).map({ String(decoding: $0, as: UTF8.self) }) {
            XCTAssertEqual(logErrorCode { _ = try parseVerifierKey(changed) }, .keyInvalid, changed)
        }
    }

    func testPublishedNotesAreOpenedOrRefused() throws {
        for example in try vectors().list("open") {
            let id = try example.text("id")
            let verifiers = try example.texts("known").map { try parseVerifierKey($0) }
            let text = example.textOrNil("note")
            let octets = try text.map { Array($0.utf8) } ?? example.hex("note_hex")
            var forms: [() throws -> OpenedNote] = [{ try openNote(octets: octets, verifiers) }]
            if let text { forms.append { try openNote(text, verifiers) } }
            for open in forms {
                guard try example.flag("ok") else {
                    XCTAssertEqual(logErrorCode { _ = try open() }, codeFor(try example.text("error")), id)
                    continue
                }
                let opened = try open()
                XCTAssertEqual(opened.signatures.map(\.name), try example.texts("verified"), id)
                XCTAssertEqual(opened.unverified.map(\.name), try example.texts("unverified"), id)
            }
        }
        for example in try vectors().list("verify") {
            _ = try openNote(example.text("note"), [parseVerifierKey(example.text("vkey"))])
        }
    }

    func testPublishedSignatureLinesAreReadOrRefused() throws {
        let signed = try signed()
        let lines = try vectors().get("signature_line_parse")
        for example in lines.list("cases") {
            let note = "\(signed.note)\(try example.text("line"))\n"
            let result = try example.text("result")
            // A line too short for a key id is skipped by sigsum and refused by Go; we are strict.
            if result.hasPrefix("error") || result.contains("too short") {
                XCTAssertEqual(logErrorCode { _ = try openNote(note, signed.verifiers) }, .malformed, result)
                continue
            }
            let added = try known(openNote(note, signed.verifiers).unverified.last, "unverified")
            XCTAssertEqual(added.name == (try lines.text("want_name")), result == "accept")
            if let id = example.textOrNil("key_id_hex") { XCTAssertEqual(hexId(added.keyId), id) }
        }
    }

    func testANoteWithAnyCharacterChangedDroppedOrDoubledDoesNotOpen() throws {
        let signed = try signed()
        let note = Array(signed.note.unicodeScalars)
        for at in note.indices {
            for part in ["", "x", "\n", " ", "+", "\u{2014}", "\(note[at])\(note[at])"] {
                var changed = String.UnicodeScalarView(note[..<at])
                changed.append(contentsOf: part.unicodeScalars)
                changed.append(contentsOf: note[(at + 1)...])
                if isSame(String(changed), signed.note) { continue }
                var opened: OpenedNote?
                let code = logErrorCode { opened = try openNote(String(changed), signed.verifiers) }
                XCTAssertNil(opened, "\(part) at \(at)")
                XCTAssert(code == .malformed || code == .signatureInvalid, "\(part) at \(at)")
            }
        }
    }

    func testNamesHoldNoCharacterThatUnicodeCallsWhiteSpace() {
        let spaces = "\t\u{b}\r \u{85}\u{a0}\u{1680}\u{2000}\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}"
        for name in spaces.unicodeScalars.map({ "a\($0)b" }) + ["", "a+b", "a+\u{301}b", "a \u{301}b", "a\u{1}b", "a\r\nb"] {
            XCTAssertFalse(isKeyName(name), hex(Array(name.utf8)))
        }
        // U+FEFF is no white space.
        for name in ["a", "\u{fc}n\u{ef}\u{feff}c\u{f6}d\u{e9}", "\u{1f600}"] { XCTAssert(isKeyName(name)) }
    }

    /// Swift takes the two for one text, and a newline after a carriage return for one character.
    func testTwoSpellingsOfANameAreTwoNamesAndNoLineEndsInACarriageReturn() throws {
        let publicKey = [UInt8](repeating: 7, count: 32)
        let composed = VerifierKey(name: "\u{e9}", keyId: 1, publicKey: publicKey)
        let line = "\(signatureStart)e\u{301} \(encodeBase64([0, 0, 0, 1, 9]))\n"
        let signed = try signed()
        let opened = try openNote(signed.note + line, signed.verifiers + [composed])
        XCTAssertEqual(opened.unverified.map { Array($0.name.utf8) }, [Array("e\u{301}".utf8)])
        for at in Array(signed.note.utf8).indices where Array(signed.note.utf8)[at] == newline {
            var octets = Array(signed.note.utf8)
            octets.insert(UInt8(ascii: "\r"), at: at)
            XCTAssertEqual(logErrorCode { _ = try openNote(octets: octets, signed.verifiers) }, .malformed)
        }
    }

    func testNotesAreBoundedInUnitsOfUTF16AndInSignatures() throws {
        let (note, verifiers) = try signed()
        let line = "\(signatureStart)x \(encodeBase64([0, 0, 0, 1, 9]))\n"
        XCTAssertEqual(try openNote(note + String(repeating: line, count: 99), verifiers).unverified.count, 1)
        XCTAssertEqual(logErrorCode { _ = try openNote(note + String(repeating: line, count: 100), verifiers) }, .malformed)
        // Two units each, of four octets.
        let wide = String(repeating: "\u{1f600}", count: 499_990)
        XCTAssertEqual(try readNote("\(wide)\n\n\(line)").signatures.count, 1)
        XCTAssertEqual(logErrorCode { _ = try readNote("\(wide)\(wide.prefix(10))\n\n\(line)") }, .malformed)
    }

    private func codeFor(_ error: String) -> LogError.Code {
        if error.hasPrefix("malformed") { return .malformed }
        return error == "ambiguous key" ? .keyInvalid : .signatureInvalid
    }
}
