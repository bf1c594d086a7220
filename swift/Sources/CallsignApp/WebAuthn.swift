// The JSON of WebAuthn Level 3 (sections 5.4 and 5.5), as far as the systems' own dialogues for passkeys need it.
import CallsignVerify

/// Of `PublicKeyCredentialCreationOptionsJSON`. Throws `ANSWER_INVALID`.
struct PasskeyCreation: Sendable, Equatable {
    let rpId: String
    let challenge: [UInt8]
    let userName: String
    let userId: [UInt8]

    init(_ options: String) throws {
        guard let said = objectIn(options) else { throw answerInvalid() }
        rpId = try said.member("rp").needText("id")
        challenge = try needOctets(said, "challenge")
        let user = try said.member("user")
        userName = try user.needText("name")
        userId = try needOctets(user, "id")
    }
}

/// Of `PublicKeyCredentialRequestOptionsJSON`. `allowed`: ids of passkeys; empty for any. Throws `ANSWER_INVALID`.
struct PasskeyRequest: Sendable, Equatable {
    let rpId: String
    let challenge: [UInt8]
    let allowed: [[UInt8]]

    init(_ options: String) throws {
        guard let said = objectIn(options) else { throw answerInvalid() }
        rpId = try said.needText("rpId")
        challenge = try needOctets(said, "challenge")
        allowed = said["allowCredentials"] == nil ? [] : try said.members("allowCredentials").map { try needOctets($0, "id") }
    }
}

/// `RegistrationResponseJSON`.
func registrationResponse(id: [UInt8], clientData: [UInt8], attestation: [UInt8]) -> String {
    credentialText(id, ["clientDataJSON": clientData, "attestationObject": attestation])
}

/// `AuthenticationResponseJSON`.
func authenticationResponse(
    id: [UInt8],
    clientData: [UInt8],
    authenticatorData: [UInt8],
    signature: [UInt8],
    userHandle: [UInt8]
) -> String {
    credentialText(id, [
        "clientDataJSON": clientData,
        "authenticatorData": authenticatorData,
        "signature": signature,
        "userHandle": userHandle,
    ])
}

private func credentialText(_ id: [UInt8], _ parts: [String: [UInt8]]) -> String {
    let name = JSONValue.string(base64URL(id))
    let response = JSONValue.object(parts.mapValues { .string(base64URL($0)) })
    return JSONValue.object(["id": name, "rawId": name, "type": "public-key", "response": response]).text
}

private func needOctets(_ members: [String: JSONValue], _ name: String) throws -> [UInt8] {
    guard let octets = octets(ofBase64URL: try members.needText(name)) else { throw answerInvalid() }
    return octets
}

/// Base64url without padding (RFC 4648, section 5).
func base64URL(_ octets: [UInt8]) -> String {
    let letters = encodeBase64(octets).utf8.filter { $0 != UInt8(ascii: "=") }.map { octet in
        switch octet {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        default: octet
        }
    }
    return String(decoding: letters, as: UTF8.self)
}

/// Nil for a text that is no base64url in its only spelling without padding.
func octets(ofBase64URL text: String) -> [UInt8]? {
    let letters = text.utf8.map { octet in
        switch octet {
        case UInt8(ascii: "-"): UInt8(ascii: "+")
        case UInt8(ascii: "_"): UInt8(ascii: "/")
        case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): UInt8(ascii: "!")
        default: octet
        }
    }
    let padding = [UInt8](repeating: UInt8(ascii: "="), count: (4 - letters.count % 4) % 4)
    return base64Octets(String(decoding: letters + padding, as: UTF8.self))
}
