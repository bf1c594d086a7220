/// A number below the order of the prime subgroup of Ed25519, 2^252 + 27742317777372353535851937790883648493, which points are
/// multiplied by. Public ones only: see `Field25519`.
struct Scalar25519: Sendable, Equatable {
    /// The least one first.
    private var words: [UInt64]

    /// The number in at most 32 octets, little-endian; nil for the order and above.
    init?(octets: ArraySlice<UInt8>) {
        precondition(octets.count <= fieldOctets)
        words = wordsOf(octets, count: 4)
        if !isBelow(words, order) { return nil }
    }

    /// The rest that the number in 64 octets, little-endian, leaves.
    init(reducing octets: [UInt8]) {
        precondition(octets.count == 2 * fieldOctets)
        let wide = wordsOf(octets[...], count: 8)
        // All but the last 260 bits are less than the order. The others come in one by one.
        words = (4..<8).map { wide[$0] >> 4 | ($0 < 7 ? wide[$0 + 1] << 60 : 0) }
        for bit in stride(from: 259, through: 0, by: -1) {
            double(adding: wide[bit / 64] >> UInt64(bit % 64) & 1)
            if !isBelow(words, order) { subtractOrder() }
        }
    }

    /// Digits d0, d1... with the number as the sum of d_i 2^i. Each is zero or odd and below 2^(width - 1) in size, and of
    /// `width` in a row at most one is not zero.
    func digits(width: Int) -> [Int8] {
        let size = 1 << width
        var digits = [Int8](repeating: 0, count: 256)
        var carry = 0
        var at = 0
        while at < digits.count {
            let window = carry + Int(bits(at: at) & UInt64(size - 1))
            if window & 1 == 0 {
                at += 1
                continue
            }
            carry = window < size / 2 ? 0 : 1
            digits[at] = Int8(window - carry * size)
            at += width
        }
        return digits
    }

    /// The bits from `at` on, 64 unless there are fewer.
    private func bits(at: Int) -> UInt64 {
        let (word, bit) = (at / 64, UInt64(at % 64))
        let next = bit == 0 || word == 3 ? 0 : words[word + 1] << (64 - bit)
        return words[word] >> bit | next
    }

    private mutating func double(adding bit: UInt64) {
        var carry = bit
        for at in words.indices {
            let above = words[at] >> 63
            words[at] = words[at] << 1 | carry
            carry = above
        }
    }

    private mutating func subtractOrder() {
        var borrow: UInt64 = 0
        for at in words.indices {
            let (first, isBelow) = words[at].subtractingReportingOverflow(order[at])
            let (rest, isStillBelow) = first.subtractingReportingOverflow(borrow)
            words[at] = rest
            borrow = isBelow || isStillBelow ? 1 : 0
        }
    }
}

private let order: [UInt64] = [0x5812_631a_5cf5_d3ed, 0x14de_f9de_a2f7_9cd6, 0, 0x1000_0000_0000_0000]

private func wordsOf(_ octets: ArraySlice<UInt8>, count: Int) -> [UInt64] {
    var words = [UInt64](repeating: 0, count: count)
    for (at, octet) in octets.enumerated() { words[at / 8] |= UInt64(octet) << UInt64(8 * (at % 8)) }
    return words
}

/// Of as many words each, the least one first.
private func isBelow(_ one: [UInt64], _ other: [UInt64]) -> Bool {
    for at in one.indices.reversed() where one[at] != other[at] { return one[at] < other[at] }
    return false
}
