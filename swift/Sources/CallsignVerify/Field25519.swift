/// A number modulo 2^255 - 19 (RFC 8032, 5.1). Everything that is verified is public, so nothing has to take the same time for
/// each input: never use this, or what is built on it, with a secret.
///
/// Five limbs of 51 bits, the least one first. Each function takes and gives limbs below 2^52; a number has several such forms,
/// and only `octets` gives the least. No sum of products comes near 2^128.
struct Field25519: Sendable {
    private var l0: UInt64
    private var l1: UInt64
    private var l2: UInt64
    private var l3: UInt64
    private var l4: UInt64

    @inline(__always)
    private init(_ l0: UInt64, _ l1: UInt64, _ l2: UInt64, _ l3: UInt64, _ l4: UInt64) {
        self.l0 = l0
        self.l1 = l1
        self.l2 = l2
        self.l3 = l3
        self.l4 = l4
    }

    static let zero = Field25519(0, 0, 0, 0, 0)
    static let one = Field25519(1, 0, 0, 0, 0)

    /// The number in 255 bits of 32 octets, little-endian. The highest bit is left out; the prime and above wrap around.
    init(octets: ArraySlice<UInt8>) {
        precondition(octets.count == fieldOctets)
        let start = octets.startIndex
        self.init(
            littleEndian(octets, at: start) & mask51,
            littleEndian(octets, at: start + 6) >> 3 & mask51,
            littleEndian(octets, at: start + 12) >> 6 & mask51,
            littleEndian(octets, at: start + 19) >> 1 & mask51,
            littleEndian(octets, at: start + 24) >> 12 & mask51)
    }

    init(octets: [UInt8]) { self.init(octets: octets[...]) }

    /// The least number that this one is, as 32 octets, little-endian.
    var octets: [UInt8] {
        let words = words
        var octets: [UInt8] = []
        octets.reserveCapacity(fieldOctets)
        for word in [words.0, words.1, words.2, words.3] {
            for shift in stride(from: 0, to: 64, by: 8) { octets.append(UInt8(truncatingIfNeeded: word >> shift)) }
        }
        return octets
    }

    /// The least number, in words of 64 bits, the least one first.
    private var words: (UInt64, UInt64, UInt64, UInt64) {
        var least = carried
        // Whether adding 19 carries out of 255 bits is whether the number is not below the prime.
        var carry = (least.l0 &+ 19) &>> 51
        carry = (least.l1 &+ carry) &>> 51
        carry = (least.l2 &+ carry) &>> 51
        carry = (least.l3 &+ carry) &>> 51
        carry = (least.l4 &+ carry) &>> 51
        least.l0 &+= 19 &* carry
        least.l1 &+= least.l0 &>> 51
        least.l2 &+= least.l1 &>> 51
        least.l3 &+= least.l2 &>> 51
        least.l4 &+= least.l3 &>> 51
        return (
            least.l0 & mask51 | least.l1 &<< 51,
            (least.l1 & mask51) &>> 13 | least.l2 &<< 38,
            (least.l2 & mask51) &>> 26 | least.l3 &<< 25,
            (least.l3 & mask51) &>> 39 | (least.l4 & mask51) &<< 12
        )
    }

    var isZero: Bool { self == .zero }

    /// Odd numbers are called negative (RFC 9496, 3.1).
    var isNegative: Bool { words.0 & 1 == 1 }

    var absolute: Field25519 { isNegative ? -self : self }

    /// Limbs below 2^51 + 2^18, of limbs of any size.
    @inline(__always)
    private var carried: Field25519 {
        Field25519(
            (l0 & mask51) &+ (l4 &>> 51) &* 19,
            (l1 & mask51) &+ (l0 &>> 51),
            (l2 & mask51) &+ (l1 &>> 51),
            (l3 & mask51) &+ (l2 &>> 51),
            (l4 & mask51) &+ (l3 &>> 51))
    }

    static func + (one: Field25519, other: Field25519) -> Field25519 {
        Field25519(
            one.l0 &+ other.l0, one.l1 &+ other.l1, one.l2 &+ other.l2, one.l3 &+ other.l3, one.l4 &+ other.l4
        ).carried
    }

    /// Twice the prime is added first, so that no limb goes below zero.
    static func - (one: Field25519, other: Field25519) -> Field25519 {
        Field25519(
            one.l0 &+ 0xf_ffff_ffff_ffda &- other.l0,
            one.l1 &+ 0xf_ffff_ffff_fffe &- other.l1,
            one.l2 &+ 0xf_ffff_ffff_fffe &- other.l2,
            one.l3 &+ 0xf_ffff_ffff_fffe &- other.l3,
            one.l4 &+ 0xf_ffff_ffff_fffe &- other.l4
        ).carried
    }

    static prefix func - (number: Field25519) -> Field25519 { zero - number }

    /// Products of limbs that lie 255 bits and more up come down again 19-fold.
    static func * (a: Field25519, b: Field25519) -> Field25519 {
        let (a1, a2, a3, a4) = (19 &* a.l1, 19 &* a.l2, 19 &* a.l3, 19 &* a.l4)
        var r0 = Wide(a.l0, b.l0)
        r0.add(a1, b.l4)
        r0.add(a2, b.l3)
        r0.add(a3, b.l2)
        r0.add(a4, b.l1)
        var r1 = Wide(a.l0, b.l1)
        r1.add(a.l1, b.l0)
        r1.add(a2, b.l4)
        r1.add(a3, b.l3)
        r1.add(a4, b.l2)
        var r2 = Wide(a.l0, b.l2)
        r2.add(a.l1, b.l1)
        r2.add(a.l2, b.l0)
        r2.add(a3, b.l4)
        r2.add(a4, b.l3)
        var r3 = Wide(a.l0, b.l3)
        r3.add(a.l1, b.l2)
        r3.add(a.l2, b.l1)
        r3.add(a.l3, b.l0)
        r3.add(a4, b.l4)
        var r4 = Wide(a.l0, b.l4)
        r4.add(a.l1, b.l3)
        r4.add(a.l2, b.l2)
        r4.add(a.l3, b.l1)
        r4.add(a.l4, b.l0)
        return reduced(r0, r1, r2, r3, r4)
    }

    var squared: Field25519 {
        let (twice0, twice1) = (2 &* l0, 2 &* l1)
        let (n3, n4) = (19 &* l3, 19 &* l4)
        var r0 = Wide(l0, l0)
        r0.add(2 &* l1, n4)
        r0.add(2 &* l2, n3)
        var r1 = Wide(twice0, l1)
        r1.add(2 &* l2, n4)
        r1.add(l3, n3)
        var r2 = Wide(twice0, l2)
        r2.add(l1, l1)
        r2.add(2 &* l3, n4)
        var r3 = Wide(twice0, l3)
        r3.add(twice1, l2)
        r3.add(l4, n4)
        var r4 = Wide(twice0, l4)
        r4.add(twice1, l3)
        r4.add(l2, l2)
        return Self.reduced(r0, r1, r2, r3, r4)
    }

    @inline(__always)
    private static func reduced(_ r0: Wide, _ r1: Wide, _ r2: Wide, _ r3: Wide, _ r4: Wide) -> Field25519 {
        Field25519(
            (r0.low & mask51) &+ r4.above51 &* 19,
            (r1.low & mask51) &+ r0.above51,
            (r2.low & mask51) &+ r1.above51,
            (r3.low & mask51) &+ r2.above51,
            (r4.low & mask51) &+ r3.above51
        ).carried
    }

    func squared(times: Int) -> Field25519 {
        var result = self
        for _ in 0..<times { result = result.squared }
        return result
    }

    /// Zero of zero.
    var inverse: Field25519 {
        // The prime less 2 is 8 times the exponent of `powerForRoot`, and 3.
        powerForRoot.squared(times: 3) * (squared * self)
    }

    /// To the power of (p - 5) / 8, which is 2^252 - 3.
    private var powerForRoot: Field25519 {
        let ones5 = powerOfOnes(self, 1, 5)
        let ones10 = powerOfOnes(ones5, 5, 2)
        let ones50 = powerOfOnes(ones10, 10, 5)
        let ones250 = powerOfOnes(ones50, 50, 5)
        return ones250.squared(times: 2) * self
    }

    /// SQRT_RATIO_M1 of RFC 9496, 4.2: the root of u / v that is not negative, or, where u / v is no square, that of SQRT_M1 u /
    /// v.
    static func rootOfRatio(_ u: Field25519, _ v: Field25519) -> (isSquare: Bool, root: Field25519) {
        let v3 = v.squared * v
        let r = u * v3 * (u * (v3.squared * v)).powerForRoot
        let check = v * r.squared
        let isCorrect = check == u
        let isFlipped = check == -u
        let isFlippedI = check == -u * rootOfMinusOne
        let root = isFlipped || isFlippedI ? r * rootOfMinusOne : r
        return (isCorrect || isFlipped, root.absolute)
    }

    /// SQRT_M1 of RFC 9496, 4.1.
    static let rootOfMinusOne = Field25519(
        0x61b274a0ea0b0, 0x0d5a5fc8f189d, 0x7ef5e9cbd0c60, 0x78595a6804c9e, 0x2b8324804fc1d)
}

extension Field25519: Equatable {
    static func == (one: Field25519, other: Field25519) -> Bool { one.words == other.words }
}

let fieldOctets = 32
private let mask51: UInt64 = 0x7_ffff_ffff_ffff

/// To the power of 2^(bits * times) - 1, of a power of 2^bits - 1.
private func powerOfOnes(_ power: Field25519, _ bits: Int, _ times: Int) -> Field25519 {
    var result = power
    for _ in 1..<times { result = result.squared(times: bits) * power }
    return result
}

/// The little-endian number in eight octets from `at` on.
private func littleEndian(_ octets: ArraySlice<UInt8>, at: Int) -> UInt64 {
    octets[at..<at + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
}

/// A sum of products, below 2^128. `UInt128` needs iOS 18.
private struct Wide {
    private(set) var low: UInt64
    private(set) var high: UInt64

    @inline(__always)
    init(_ one: UInt64, _ other: UInt64) {
        let product = one.multipliedFullWidth(by: other)
        (low, high) = (product.low, product.high)
    }

    @inline(__always)
    mutating func add(_ one: UInt64, _ other: UInt64) {
        let product = one.multipliedFullWidth(by: other)
        let sum = low.addingReportingOverflow(product.low)
        low = sum.partialValue
        high = high &+ product.high &+ (sum.overflow ? 1 : 0)
    }

    /// The sum shifted right by 51 bits, where that is below 2^64.
    @inline(__always)
    var above51: UInt64 { high &<< 13 | low &>> 51 }
}
