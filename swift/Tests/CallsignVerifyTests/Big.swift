import CallsignVerify

/// A number of any size, not below zero, by the arithmetic of school: what the field and the scalars are held against.
struct Big: Equatable, Comparable {
    /// The least one first, the last one not zero.
    private var digits: [UInt32]

    private init(digits: [UInt32]) {
        self.digits = digits
        while self.digits.last == 0 { self.digits.removeLast() }
    }

    init(_ number: UInt32) { self.init(digits: [number]) }

    /// Little-endian.
    init(octets: [UInt8]) {
        self.init(
            digits: stride(from: 0, to: octets.count, by: 4).map { start in
                octets[start..<min(start + 4, octets.count)].reversed().reduce(0) { $0 << 8 | UInt32($1) }
            })
    }

    static func power(_ exponent: Int) -> Big {
        Big(digits: [UInt32](repeating: 0, count: exponent / 32) + [1 << UInt32(exponent % 32)])
    }

    /// Little-endian, without what is above.
    func octets(_ count: Int = 32) -> [UInt8] {
        (0..<count).map { (at: Int) -> UInt8 in
            guard at / 4 < digits.count else { return 0 }
            return UInt8(truncatingIfNeeded: digits[at / 4] >> (8 * (at % 4)))
        }
    }

    var bitCount: Int { 32 * digits.count - (digits.last?.leadingZeroBitCount ?? 0) }

    func bit(_ at: Int) -> Bool { at / 32 < digits.count && digits[at / 32] >> UInt32(at % 32) & 1 == 1 }

    static func < (one: Big, other: Big) -> Bool {
        if one.digits.count != other.digits.count { return one.digits.count < other.digits.count }
        return one.digits.reversed().lexicographicallyPrecedes(other.digits.reversed())
    }

    static func + (one: Big, other: Big) -> Big {
        var carry: UInt64 = 0
        var sum: [UInt32] = []
        for at in 0...max(one.digits.count, other.digits.count) {
            carry += UInt64(at < one.digits.count ? one.digits[at] : 0) + UInt64(at < other.digits.count ? other.digits[at] : 0)
            sum.append(UInt32(truncatingIfNeeded: carry))
            carry >>= 32
        }
        return Big(digits: sum)
    }

    /// Of a number that is not below the other.
    static func - (one: Big, other: Big) -> Big {
        var borrow: Int64 = 0
        var rest: [UInt32] = []
        for (at, digit) in one.digits.enumerated() {
            let difference = Int64(digit) - Int64(at < other.digits.count ? other.digits[at] : 0) - borrow
            rest.append(UInt32(truncatingIfNeeded: difference))
            borrow = difference < 0 ? 1 : 0
        }
        precondition(borrow == 0)
        return Big(digits: rest)
    }

    static func * (one: Big, other: Big) -> Big {
        var product = [UInt32](repeating: 0, count: one.digits.count + other.digits.count)
        for (i, a) in one.digits.enumerated() {
            var carry: UInt64 = 0
            for (j, b) in other.digits.enumerated() {
                carry += UInt64(product[i + j]) + UInt64(a) * UInt64(b)
                product[i + j] = UInt32(truncatingIfNeeded: carry)
                carry >>= 32
            }
            product[i + other.digits.count] = UInt32(carry)
        }
        return Big(digits: product)
    }

    static func % (number: Big, modulus: Big) -> Big {
        // With one digit less than the modulus, what is left of the number is below it.
        let low = max(0, number.digits.count - modulus.digits.count + 1)
        var rest = Big(digits: Array(number.digits[low...]))
        for at in (0..<32 * low).reversed() {
            rest = rest + rest + Big(number.bit(at) ? 1 : 0)
            if rest >= modulus { rest = rest - modulus }
        }
        return rest
    }

    /// 2^255 - 19.
    static let prime = power(255) - Big(19)

    /// 2^252 + 27742317777372353535851937790883648493.
    static let order =
        power(252)
        + Big(octets: [0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14])
}

/// Octets that look random, the same in each run.
func octetsOf(_ name: String, _ count: Int = 32) -> [UInt8] { Array(sha512(Array(name.utf8)).prefix(count)) }
