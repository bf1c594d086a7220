import CallsignCrypto
import CallsignVerify

// SFrame (RFC 9605) with cipher suite 5, AES_256_GCM_SHA512_128: headers, keys, and one frame sealed or opened. `FrameCryptor`
// decides which keys and counters are used.

/// `size` is the number of the header's octets.
struct SFrameHeader: Sendable, Equatable {
    let kid: UInt64
    let counter: UInt64
    let size: Int
}

/// The key of 32 octets and the salt of 12 of one KID.
struct SFrameKey: Sendable {
    private let key: [UInt8]
    let salt: [UInt8]

    /// Section 4.4.2.
    init(baseKey: [UInt8], kid: UInt64) {
        func derived(_ purpose: String, _ length: Int) -> [UInt8] {
            let label = Array("SFrame 1.0 Secret \(purpose) ".utf8)
            let info = label + bigEndianOctets(kid, count: 8) + bigEndianOctets(suite, count: 2)
            return HKDF.derive(.sha512, secret: baseKey, info: info, length: length)
        }
        key = derived("key", keyOctets)
        salt = derived("salt", nonceOctets)
    }

    /// Gives header, ciphertext and tag (section 4.4.3). A KID and counter may be used once only.
    func seal(kid: UInt64, counter: UInt64, metadata: [UInt8], _ plain: [UInt8]) throws(CryptoError) -> [UInt8] {
        let header = formatSFrameHeader(kid: kid, counter: counter)
        return header + (try platform.sealGCM(key: key, nonce: nonce(counter), plain, authenticating: header + metadata))
    }

    /// Opens ciphertext and tag behind the octets of `header` (section 4.4.4). Throws unless all of it is authentic.
    func open(counter: UInt64, header: [UInt8], metadata: [UInt8], _ sealed: [UInt8]) throws(CryptoError) -> [UInt8] {
        try platform.openGCM(key: key, nonce: nonce(counter), sealed, authenticating: header + metadata)
    }

    private func nonce(_ counter: UInt64) -> [UInt8] {
        zip([0, 0, 0, 0] + bigEndianOctets(counter, count: 8), salt).map { $0 ^ $1 }
    }
}

/// Section 4.3: values below 8 are in the first octet, larger ones follow it in as few octets as they need.
func formatSFrameHeader(kid: UInt64, counter: UInt64) -> [UInt8] {
    let (kidOctets, counterOctets) = (minimal(kid), minimal(counter))
    let config = fieldOf(kid, kidOctets) << 4 | fieldOf(counter, counterOctets)
    return [config] + (kid < 8 ? [] : kidOctets) + (counter < 8 ? [] : counterOctets)
}

/// Nil when the octets end within the header.
func parseSFrameHeader(_ octets: [UInt8]) -> SFrameHeader? {
    guard let config = octets.first else { return nil }
    var size = 1
    func read(_ field: UInt8) -> UInt64? {
        if field < 8 { return UInt64(field) }
        let count = Int(field & 7) + 1
        guard size + count <= octets.count else { return nil }
        defer { size += count }
        return bigEndian(octets, at: size, count: count)
    }
    guard let kid = read(config >> 4), let counter = read(config & 15) else { return nil }
    return SFrameHeader(kid: kid, counter: counter, size: size)
}

private func fieldOf(_ value: UInt64, _ octets: [UInt8]) -> UInt8 { value < 8 ? UInt8(value) : 8 | UInt8(octets.count - 1) }

/// Big-endian, without leading zeros; one octet at least.
private func minimal(_ value: UInt64) -> [UInt8] {
    bigEndianOctets(value, count: max(1, 8 - value.leadingZeroBitCount / 8))
}

private let keyOctets = 32
private let suite: UInt64 = 5
