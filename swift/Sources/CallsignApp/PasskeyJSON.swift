// What an authenticator of the system takes and gives, out of and into WebAuthn's JSON (Level 3, sections 5.1.8 to 5.1.10).

import CallsignVerify

/// Out of `PublicKeyCredentialCreationOptions`. `excluded`: the ids of the passkeys that the user has.
struct PasskeyCreation: Sendable, Equatable {
    let domain: String
    let challenge: [UInt8]
    let userHandle: [UInt8]
    let userName: String
    let excluded: [[UInt8]]

    /// Throws `ANSWER_INVALID`.
    init(_ options: String) throws {
        guard let members = objectIn(options) else { throw answerInvalid() }
        let user = try members.member("user")
        domain = try members.member("rp").needText("id")
        challenge = try members.needOctets("challenge")
        userHandle = try user.needOctets("id")
        userName = try user.needText("name")
        excluded = try members.credentialIds("excludeCredentials")
    }
}

/// Out of `PublicKeyCredentialRequestOptions`. `allowed` is empty where each passkey of the domain will do.
struct PasskeyRequest: Sendable, Equatable {
    let domain: String
    let challenge: [UInt8]
    let allowed: [[UInt8]]

    /// Throws `ANSWER_INVALID`.
    init(_ options: String) throws {
        guard let members = objectIn(options) else { throw answerInvalid() }
        domain = try members.needText("rpId")
        challenge = try members.needOctets("challenge")
        allowed = try members.credentialIds("allowCredentials")
    }
}

/// `RegistrationResponse`.
func passkeyRegistration(id: [UInt8], clientData: [UInt8], attestation: [UInt8]) -> String {
    credentialOf(id, ["clientDataJSON": .string(base64URL(clientData)), "attestationObject": .string(base64URL(attestation))])
}

/// `AuthenticationResponse`.
func passkeyAssertion(
    id: [UInt8], clientData: [UInt8], authenticatorData: [UInt8], signature: [UInt8], userHandle: [UInt8]
) -> String {
    let response: [String: JSONValue] = [
        "clientDataJSON": .string(base64URL(clientData)),
        "authenticatorData": .string(base64URL(authenticatorData)),
        "signature": .string(base64URL(signature)),
        "userHandle": .string(base64URL(userHandle)),
    ]
    return credentialOf(id, response)
}

private func credentialOf(_ id: [UInt8], _ response: [String: JSONValue]) -> String {
    let members: [String: JSONValue] = [
        "id": .string(base64URL(id)),
        "rawId": .string(base64URL(id)),
        "type": "public-key",
        "clientExtensionResults": [:],
        "response": .object(response),
    ]
    return JSONValue.object(members).text
}

extension [String: JSONValue] {
    fileprivate func needOctets(_ name: String) throws -> [UInt8] {
        guard let octets = base64URLOctets(try needText(name)) else { throw answerInvalid() }
        return octets
    }

    fileprivate func credentialIds(_ name: String) throws -> [[UInt8]] {
        self[name] == nil ? [] : try members(name).map { try $0.needOctets("id") }
    }
}

/// Base64url without padding (RFC 4648, section 5).
func base64URL(_ octets: [UInt8]) -> String {
    let text = encodeBase64(octets).utf8.filter { $0 != UInt8(ascii: "=") }.map { octet in
        switch octet {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        default: octet
        }
    }
    return String(decoding: text, as: UTF8.self)
}

/// Nil for another text.
func base64URLOctets(_ text: String) -> [UInt8]? {
    var plain: [UInt8] = []
    for octet in text.utf8 {
        switch octet {
        case UInt8(ascii: "-"): plain.append(UInt8(ascii: "+"))
        case UInt8(ascii: "_"): plain.append(UInt8(ascii: "/"))
        case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
        default: plain.append(octet)
        }
    }
    plain += [UInt8](repeating: UInt8(ascii: "="), count: (4 - plain.count % 4) % 4)
    return base64Octets(String(decoding: plain, as: UTF8.self))
}
