// What is sealed of a call's key (docs/check/crypto.md): with it go the hash of the set of devices that it is sealed for, the time,
// and the sender's newest checkpoint with the log's signature. A log that shows two people different trees is found out when
// one calls the other, and nothing on the way can tell or strip it.
//
//     call key 32  set hash 32  sealed at u64, milliseconds since 1970  [ packed checkpoint 108 ]

/// `callKey` and `setHash` have 32 octets each. `sealedAtMs` is by the sender's clock.
public struct CallKeyContent: Sendable, Equatable {
    public let callKey: [UInt8]
    public let setHash: [UInt8]
    public let sealedAtMs: Int

    public init(callKey: [UInt8], setHash: [UInt8], sealedAtMs: Int) {
        self.callKey = callKey
        self.setHash = setHash
        self.sealedAtMs = sealedAtMs
    }
}

/// What was opened, taken apart. `note` is for `LogClient.compareWith`, which verifies it; nil where none came.
public struct OpenedCallKey: Sendable, Equatable {
    public let content: CallKeyContent
    public let note: String?
}

/// The octets to seal. Throws `malformed` for a key, a hash or a time of another form.
public func packCallKey(_ content: CallKeyContent, checkpoint: SignedCheckpoint? = nil) throws(LogError) -> [UInt8] {
    let (keyOctets, setOctets) = (content.callKey.count, content.setHash.count)
    guard keyOctets == callKeyOctets, setOctets == hashOctets, (0...safeMax).contains(content.sealedAtMs) else {
        throw .malformed("a call key of \(keyOctets) octets, sealed at \(content.sealedAtMs), with a hash of \(setOctets)")
    }
    let packed: [UInt8] = if let checkpoint { try packCheckpoint(checkpoint) ?? [] } else { [] }
    return content.callKey + content.setHash + bigEndianOctets(UInt64(content.sealedAtMs), count: 8) + packed
}

/// Takes apart what was opened. `origin` is the name of the app's log. Throws `malformed` for what is of another form.
public func readCallKey(_ opened: [UInt8], origin: String) throws(LogError) -> OpenedCallKey {
    let malformed = LogError.malformed("\(opened.count) octets are not what is sealed of a call's key")
    if opened.count < contentOctets { throw malformed }
    let note = readPackedCheckpoint(Array(opened[contentOctets...]), origin: origin)
    let sealedAtMs = bigEndian(opened, at: timeAt, count: 8)
    guard opened.count == contentOctets || note != nil, sealedAtMs <= UInt64(safeMax) else { throw malformed }
    let callKey = Array(opened[..<callKeyOctets])
    let setHash = Array(opened[callKeyOctets..<timeAt])
    return OpenedCallKey(
        content: CallKeyContent(callKey: callKey, setHash: setHash, sealedAtMs: Int(sealedAtMs)), note: note)
}

private let callKeyOctets = 32
private let timeAt = callKeyOctets + hashOctets
private let contentOctets = timeAt + 8
