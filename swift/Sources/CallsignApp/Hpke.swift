import CallsignCrypto

// HPKE (RFC 9180) in mode Auth, single shot: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-256-GCM. CryptoKit's own HPKE wants its
// own kinds of keys and iOS 17; keys behind `DeviceKeys` have `agree` alone.

/// A private key of P-256, wherever it is kept, and its public key: an uncompressed point. `agree` is that of `DeviceKeys`.
struct AgreementKey: Sendable {
    let point: [UInt8]
    let agree: @Sendable ([UInt8]) async throws -> [UInt8]

    init(point: [UInt8], agree: @escaping @Sendable ([UInt8]) async throws -> [UInt8]) {
        self.point = point
        self.agree = agree
    }

    /// `GenerateKeyPair` (4).
    static func ephemeral() -> AgreementKey {
        let pair = KeyPair()
        return AgreementKey(point: pair.point) { try pair.agree($0) }
    }
}

/// AES-GCM under its number of section 7.3.
struct Aead: Sendable {
    let id: Int
    let keyOctets: Int

    static let aes256GCM = Aead(id: 0x0002, keyOctets: 32)
}

/// Appendix A.3 has another `aead`.
struct HpkeContext: Sendable {
    let info: [UInt8]
    var aad: [UInt8] = []
    var aead = Aead.aes256GCM
}

/// `SealAuth` (6.1): `enc` of 65 octets, then the ciphertext. Throws `CryptoError` for a `receiver` off the curve. Test vectors
/// give their `ephemeral` key.
func sealAuth(
    _ plaintext: [UInt8], sender: AgreementKey, receiver: [UInt8], _ context: HpkeContext,
    ephemeral: AgreementKey = .ephemeral()
) async throws -> [UInt8] {
    // AuthEncap (4.1). The sender's key takes part in one agreement.
    try assertOnCurve(receiver)
    let dh = try await ephemeral.agree(receiver) + sender.agree(receiver)
    let enc = ephemeral.point
    let (key, nonce) = schedule(sharedSecret: extractAndExpand(dh, enc + receiver + sender.point), context)
    return enc + (try platform.sealGCM(key: key, nonce: nonce, plaintext, authenticating: context.aad))
}

/// `OpenAuth` (6.1) of what `sealAuth` gave. Throws `CryptoError` unless `sender` sealed it for `receiver` with the same
/// `context`.
func openAuth(
    _ sealed: [UInt8], sender: [UInt8], receiver: AgreementKey, _ context: HpkeContext
) async throws -> [UInt8] {
    guard sealed.count >= pointOctets + tagOctets else { throw CryptoError.notAuthentic }
    // AuthDecap (4.1). The receiver's key takes part in both agreements, so it meets no point that was not checked (7.1.4).
    let enc = Array(sealed.prefix(pointOctets))
    try assertOnCurve(enc)
    try assertOnCurve(sender)
    let dh = try await receiver.agree(enc) + receiver.agree(sender)
    let (key, nonce) = schedule(sharedSecret: extractAndExpand(dh, enc + receiver.point + sender), context)
    return try platform.openGCM(key: key, nonce: nonce, Array(sealed.dropFirst(pointOctets)), authenticating: context.aad)
}

/// Keys elsewhere may not look: a point off the curve would give the private key away bit by bit (7.1.4).
private func assertOnCurve(_ point: [UInt8]) throws(CryptoError) {
    if !platform.isP256Point(point) { throw .keyInvalid }
}

/// `ExtractAndExpand` (4.1).
private func extractAndExpand(_ dh: [UInt8], _ kemContext: [UInt8]) -> [UInt8] {
    let suite = Array("KEM".utf8) + i2osp(kemId)
    let pseudorandom = labeledExtract(suite, salt: [], "eae_prk", dh)
    return labeledExpand(suite, pseudorandom, "shared_secret", kemContext, hashOctets)
}

/// Key and nonce of `KeySchedule` (5.1) in mode Auth: no PSK. The first nonce is the base nonce (5.2).
private func schedule(sharedSecret: [UInt8], _ context: HpkeContext) -> (key: [UInt8], nonce: [UInt8]) {
    let suite = Array("HPKE".utf8) + i2osp(kemId) + i2osp(kdfId) + i2osp(context.aead.id)
    let pskIdHash = labeledExtract(suite, salt: [], "psk_id_hash", [])
    let infoHash = labeledExtract(suite, salt: [], "info_hash", context.info)
    let scheduled = [modeAuth] + pskIdHash + infoHash
    let secret = labeledExtract(suite, salt: sharedSecret, "secret", [])
    let key = labeledExpand(suite, secret, "key", scheduled, context.aead.keyOctets)
    return (key, labeledExpand(suite, secret, "base_nonce", scheduled, nonceOctets))
}

/// `LabeledExtract` (4).
private func labeledExtract(_ suite: [UInt8], salt: [UInt8], _ label: String, _ ikm: [UInt8]) -> [UInt8] {
    HKDF.extract(.sha256, salt: salt, secret: version + suite + Array(label.utf8) + ikm)
}

/// `LabeledExpand` (4).
private func labeledExpand(
    _ suite: [UInt8], _ pseudorandom: [UInt8], _ label: String, _ info: [UInt8], _ length: Int
) -> [UInt8] {
    let labeledInfo = i2osp(length) + version + suite + Array(label.utf8) + info
    return HKDF.expand(.sha256, pseudorandom: pseudorandom, info: labeledInfo, length: length)
}

/// A number in two octets, big-endian: `I2OSP` (RFC 8017, 4.1).
private func i2osp(_ value: Int) -> [UInt8] { [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)] }

/// Of AES-GCM.
let tagOctets = 16
let nonceOctets = 12

/// Sections 5, 7.1, 7.2 and 7.3.
private let modeAuth: UInt8 = 2
private let kemId = 0x0010
private let kdfId = 0x0001
private let hashOctets = 32
private let version = Array("HPKE-v1".utf8)
