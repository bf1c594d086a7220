import CallsignCrypto
import CallsignVerify
import Foundation
import TestSupport

@testable import CallsignApp

/// An authenticator in software with the page around it, for the pages of a development server: it makes passkeys (ES256), and signs as
/// WebAuthn Level 3 says, by its newest passkey.
final class SoftwareAuthenticator: PasskeyAuthenticator {
    private struct Passkey: Sendable {
        let id: [UInt8]
        let keys: KeyPair
        let userHandle: String
    }

    private let origin: String
    private let newest = Locked<Passkey?>(nil)

    init(_ server: String) { origin = server.replacingOccurrences(of: "127.0.0.1", with: "localhost") }

    func create(_ options: String) async throws -> String {
        let said = try known(JSONValue(options), "options")
        let keys = KeyPair()
        let id = randomOctets(32)
        let made = Passkey(id: id, keys: keys, userHandle: try said.get("user").text("id"))
        newest.with { $0 = made }
        let key = try fromHex("a5010203262001215820") + keys.point[1..<33] + fromHex("225820") + keys.point[33..<65]
        let credential = [UInt8](repeating: 0, count: 16) + bigEndianOctets(UInt64(id.count), count: 2) + id + key
        let data = authenticatorData(try said.get("rp").text("id"), flags: 0x5d) + credential
        var map: [UInt8] = [0xa3, 0x63]
        map += Array("fmt".utf8) + [0x64] + Array("none".utf8)
        map += [0x67] + Array("attStmt".utf8) + [0xa0, 0x68]
        map += Array("authData".utf8) + [0x59]
        let attestation = map + bigEndianOctets(UInt64(data.count), count: 2) + data
        let clientData = try clientData("webauthn.create", said)
        return credentialOf(id, ["clientDataJSON": clientData, "attestationObject": attestation])
    }

    func get(_ options: String) async throws -> String {
        let said = try known(JSONValue(options), "options")
        let passkey = try known(newest.with { $0 }, "passkey")
        let data = authenticatorData(try said.text("rpId"), flags: 0x1d)
        let clientData = try clientData("webauthn.get", said)
        let signature = try platform.p256Sign(key: passkey.keys.secret, data + sha256(clientData))
        return credentialOf(passkey.id, [
            "authenticatorData": data,
            "signature": der(signature),
            "userHandle": try known(base64URLOctets(passkey.userHandle), "userHandle"),
            "clientDataJSON": clientData,
        ])
    }

    private func clientData(_ type: String, _ options: JSONValue) throws -> [UInt8] {
        let said: JSONValue = [
            "type": .string(type), "challenge": try options.get("challenge"), "origin": .string(origin), "crossOrigin": false,
        ]
        return Array(said.text.utf8)
    }

    /// `flags`: the user is present and verified, and the key backed up; with a new one where it is made.
    private func authenticatorData(_ rpId: String, flags: UInt8) -> [UInt8] {
        sha256(Array(rpId.utf8)) + [flags] + [UInt8](repeating: 0, count: 4)
    }

    private func credentialOf(_ id: [UInt8], _ parts: [String: [UInt8]]) -> String {
        let response = parts.mapValues { JSONValue.string(base64URL($0)) }
        let name = JSONValue.string(base64URL(id))
        let said: JSONValue = ["id": name, "rawId": name, "type": "public-key", "response": .object(response)]
        return said.text
    }
}

/// An ECDSA-Sig-Value (RFC 3279) of r || s.
private func der(_ signature: [UInt8]) -> [UInt8] {
    let halves = [signature[..<32], signature[32...]].map { half -> [UInt8] in
        let digits = Array(half.drop { $0 == 0 })
        let integer = (digits.first ?? 0x80) >= 0x80 ? [0] + digits : digits
        return [0x02, UInt8(integer.count)] + integer
    }
    return [0x30, UInt8(halves[0].count + halves[1].count)] + halves[0] + halves[1]
}
