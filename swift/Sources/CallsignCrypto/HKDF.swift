/// HKDF (RFC 5869) over the platform's HMAC.
package enum HKDF {
    package enum Hash {
        case sha256, sha512

        var octets: Int { self == .sha256 ? 32 : 64 }

        func hmac(key: [UInt8], _ octets: [UInt8]) -> [UInt8] {
            self == .sha256 ? platform.hmacSHA256(key: key, octets) : platform.hmacSHA512(key: key, octets)
        }
    }

    /// Section 2.2. No salt is one of zeros.
    package static func extract(_ hash: Hash, salt: [UInt8] = [], secret: [UInt8]) -> [UInt8] {
        hash.hmac(key: salt.isEmpty ? [UInt8](repeating: 0, count: hash.octets) : salt, secret)
    }

    /// Section 2.3: at most 255 times the hash's length.
    package static func expand(_ hash: Hash, pseudorandom: [UInt8], info: [UInt8], length: Int) -> [UInt8] {
        precondition(length <= 255 * hash.octets)
        var last: [UInt8] = []
        var all: [UInt8] = []
        var counter: UInt8 = 0
        while all.count < length {
            counter += 1
            last = hash.hmac(key: pseudorandom, last + info + [counter])
            all += last
        }
        return Array(all.prefix(length))
    }

    package static func derive(_ hash: Hash, salt: [UInt8] = [], secret: [UInt8], info: [UInt8], length: Int) -> [UInt8] {
        expand(hash, pseudorandom: extract(hash, salt: salt, secret: secret), info: info, length: length)
    }
}
