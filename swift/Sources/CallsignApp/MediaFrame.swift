import CallsignCrypto

// The format `callsign-media-1` of one encoded frame, as docs/protocol/media-frames.md has it: some octets stay clear, for the gateway and
// the receiver's depacketizer; an SFrame with all that follows comes after them.

/// The codec that made a frame.
public enum FrameFormat: String, Sendable, CaseIterable {
    case opus, vp8, h264
}

/// A sealed frame taken apart; none of it is known to be true before it is opened. `metadata` are the clear octets that are
/// authenticated, and `sealed` ciphertext and tag.
struct SealedFrame: Sendable {
    let kid: UInt64
    let counter: UInt64
    let clear: [UInt8]
    let metadata: [UInt8]
    let header: [UInt8]
    let sealed: [UInt8]

    /// The encoder's frame. Throws unless it is authentic.
    func open(_ key: SFrameKey) throws(CryptoError) -> [UInt8] {
        clear + (try key.open(counter: counter, header: header, metadata: metadata, sealed))
    }
}

/// 32 octets from the call's key, which serves other purposes too.
func deriveMediaBase(_ callKey: [UInt8], callId: String, epoch: Int) -> [UInt8] {
    HKDF.derive(.sha256, secret: callKey, info: Array("callsign media v1 \(callId) \(epoch)".utf8), length: 32)
}

/// Nil for a frame that its codec does not make: it must not be sent.
func sealFrame(_ format: FrameFormat, _ key: SFrameKey, kid: UInt64, counter: UInt64, _ frame: [UInt8]) -> [UInt8]? {
    guard let split = splitOf(format, frame) else { return nil }
    let clear = Array(frame[..<split.upperBound])
    let plain = Array(frame[split.upperBound...])
    guard let sframe = try? key.seal(kid: kid, counter: counter, metadata: Array(frame[split]), plain) else { return nil }
    return clear + (format == .h264 ? escapeNal(sframe, behind: clear) : sframe)
}

/// Nil for octets that no sender makes.
func parseFrame(_ format: FrameFormat, _ frame: [UInt8]) -> SealedFrame? {
    guard let split = splitOf(format, frame) else { return nil }
    let clear = Array(frame[..<split.upperBound])
    let behind = Array(frame[split.upperBound...])
    let sframe = format == .h264 ? unescapeNal(behind, behind: clear) : behind
    guard let header = parseSFrameHeader(sframe), sframe.count >= header.size + tagOctets else { return nil }
    return SealedFrame(
        kid: header.kid, counter: header.counter, clear: clear, metadata: Array(frame[split]),
        header: Array(sframe[..<header.size]), sealed: Array(sframe[header.size...]))
}

/// The clear octets that are authenticated; all before them is clear too. Nil for a frame that is shorter, or has no slice: all
/// of it would be clear.
private func splitOf(_ format: FrameFormat, _ frame: [UInt8]) -> Range<Int>? {
    var from = 0
    let count: Int
    switch format {
    case .opus: count = 0
    // The frame tag of RFC 6386, section 9.1; the start code and size of a key frame, whose first bit is 0.
    case .vp8: count = frame.first.map { $0 & 1 == 0 } == true ? 10 : 3
    // Parameter sets and start codes before the slice may be written anew on the way.
    case .h264:
        guard let slice = sliceIn(frame) else { return nil }
        from = slice
        count = 3
    }
    return frame.count < from + count ? nil : from..<from + count
}

/// The offset of the first slice's NAL header (ITU-T H.264, table 7-1).
private func sliceIn(_ frame: [UInt8]) -> Int? {
    frame.indices.dropFirst(3).first { at in
        frame[at - 3] == 0 && frame[at - 2] == 0 && frame[at - 1] == 1 && (1...5).contains(frame[at] & 31)
    }
}

/// Emulation prevention (ITU-T H.264, section 7.4.1): 3 comes before an octet below 4 that follows two zeros, for a start code by
/// chance would split the frame. Zeros at the end of what it is `behind` count.
func escapeNal(_ octets: [UInt8], behind before: [UInt8]) -> [UInt8] {
    var escaped: [UInt8] = []
    escaped.reserveCapacity(octets.count + (octets.count + 3) / 2)
    var zeros = zerosAtEnd(before)
    for octet in octets {
        if zeros >= 2 && octet < 4 {
            escaped.append(3)
            zeros = 0
        }
        escaped.append(octet)
        zeros = octet == 0 ? zeros + 1 : 0
    }
    return escaped
}

func unescapeNal(_ octets: [UInt8], behind before: [UInt8]) -> [UInt8] {
    var unescaped: [UInt8] = []
    unescaped.reserveCapacity(octets.count)
    var zeros = zerosAtEnd(before)
    for octet in octets {
        if zeros >= 2 && octet == 3 {
            zeros = 0
            continue
        }
        unescaped.append(octet)
        zeros = octet == 0 ? zeros + 1 : 0
    }
    return unescaped
}

private func zerosAtEnd(_ octets: [UInt8]) -> Int { octets.suffix(2).reversed().prefix { $0 == 0 }.count }
