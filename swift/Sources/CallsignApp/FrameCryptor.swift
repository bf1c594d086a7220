import CallsignVerify

/// Why a frame was not opened, by the name that `@callsign/sdk/app` gives it too.
public enum FrameFailure: String, Sendable {
    /// It was sealed with the key of an epoch that is not held here.
    case noKey = "no-key"

    /// It was sealed with another key, or changed on the way.
    case notAuthentic = "not-authentic"

    /// It came before, is older than the window, or has a key that its sender had left for a newer one.
    case replayed

    /// It was sealed here.
    case reflected
    case malformed

    /// More senders than a call can have in one epoch.
    case tooManySenders = "too-many-senders"
}

/// The encoder's frame, sealed with the key of `epoch`. Where it `fillsEpoch`, its sender is the last whose frames that key
/// opens: the call needs the next one.
public struct OpenedFrame: Sendable, Equatable {
    public let frame: [UInt8]
    public let epoch: Int
    public let fillsEpoch: Bool
}

/// The result of `FrameCryptor.open`.
public enum FrameOutcome: Sendable, Equatable {
    case opened(OpenedFrame)

    /// Drop the frame.
    case unopened(FrameFailure)
}

/// Seals this app's frames of a call and opens the other members' with the call's keys (docs/protocol/media-frames.md). All state is
/// bounded, and none is made by a frame that is not authentic. Safe to share between threads; one for each run of the app and
/// call.
public final class FrameCryptor: Sendable {
    private let state: Locked<FrameState>

    public convenience init(callId: String) { self.init(callId: callId, monotonicMs: monotonicNowMs) }

    init(callId: String, monotonicMs: @escaping @Sendable () -> Int) {
        state = Locked(FrameState(callId: callId, monotonicMs: monotonicMs))
    }

    /// Opens frames of this epoch from now on. The oldest epoch goes when there are too many.
    public func setKey(epoch: Int, _ callKey: [UInt8]) { state.with { $0.setKey(epoch, callKey) } }

    /// Seals frames with the key of this epoch from now on, and without an epoch none. Gives false where it is not held.
    @discardableResult public func useKey(epoch: Int?) -> Bool { state.with { $0.useKey(epoch) } }

    /// Frames of this epoch can't be opened any more, and none is sealed with its key.
    public func dropKey(epoch: Int) { state.with { $0.dropKey(epoch) } }

    /// Nil where there is no key yet, or its codec makes no such frame: then nothing may be sent.
    public func seal(_ format: FrameFormat, _ frame: [UInt8]) -> [UInt8]? {
        guard let (sending, counter) = state.with({ $0.next() }) else { return nil }
        return sealFrame(format, sending.key, kid: sending.kid, counter: counter, frame)
    }

    public func open(_ format: FrameFormat, _ octets: [UInt8]) -> FrameOutcome {
        guard let sealed = parseFrame(format, octets) else { return .unopened(.malformed) }
        return state.with { $0.open(sealed) }
    }
}

private struct FrameState {
    /// Its first frame of the epoch was opened at `sinceMs`.
    final class Sender {
        let key: SFrameKey
        let sinceMs: Int
        var window = ReplayWindow()

        init(key: SFrameKey, sinceMs: Int) {
            self.key = key
            self.sinceMs = sinceMs
        }
    }

    final class Epoch {
        var key: [UInt8]
        var baseKey: [UInt8]

        /// By KID. Only an authentic frame adds one.
        var senders: [UInt64: Sender] = [:]

        init(key: [UInt8], baseKey: [UInt8]) {
            self.key = key
            self.baseKey = baseKey
        }
    }

    struct Sending {
        let epoch: Int
        let kid: UInt64
        let key: SFrameKey
    }

    let callId: String
    let monotonicMs: @Sendable () -> Int
    private var epochs: [Int: Epoch] = [:]

    /// All members seal with one call key. A KID of its own for each run gives each an SFrame key of its own, so that no nonce is
    /// used twice under one key, not even after a restart.
    private var ownNumbers = [randomNumber()]

    /// One for all tracks and epochs, and it never goes back.
    private var counter: UInt64 = 0
    private var sending: Sending?

    init(callId: String, monotonicMs: @escaping @Sendable () -> Int) {
        self.callId = callId
        self.monotonicMs = monotonicMs
    }

    mutating func setKey(_ epoch: Int, _ callKey: [UInt8]) {
        // Sent again, it must not forget which frames came before.
        if epochs[epoch]?.key == callKey { return }
        // Zeros are a key that was wiped, which anyone could open frames with.
        guard (1...epochMax).contains(epoch), callKey.contains(where: { $0 != 0 }) else { return }
        let isUsed = sending?.epoch == epoch
        dropKey(epoch)
        epochs[epoch] = Epoch(key: callKey, baseKey: deriveMediaBase(callKey, callId: callId, epoch: epoch))
        if isUsed { _ = useKey(epoch) }
        if epochs.count > epochsMax, let oldest = epochs.keys.min() { dropKey(oldest) }
    }

    mutating func useKey(_ epoch: Int?) -> Bool {
        guard let epoch else {
            sending = nil
            return false
        }
        guard let held = epochs[epoch] else { return false }
        if sending?.epoch == epoch { return true }
        let kid = kidOf(epoch, ownNumbers[0])
        sending = Sending(epoch: epoch, kid: kid, key: SFrameKey(baseKey: held.baseKey, kid: kid))
        return true
    }

    mutating func dropKey(_ epoch: Int) {
        if let dropped = epochs.removeValue(forKey: epoch) {
            wipe(&dropped.key)
            wipe(&dropped.baseKey)
        }
        if sending?.epoch == epoch { sending = nil }
    }

    mutating func next() -> (Sending, UInt64)? {
        guard let sending else { return nil }
        defer { counter += 1 }
        return (sending, counter)
    }

    mutating func open(_ sealed: SealedFrame) -> FrameOutcome {
        let kid = sealed.kid
        let epochNumber = Int(kid >> numberBits)
        guard let epoch = epochs[epochNumber] else { return .unopened(.noKey) }
        let known = epoch.senders[kid]
        if known == nil && epoch.senders.count >= sendersMax { return .unopened(.tooManySenders) }
        let sender = known ?? Sender(key: SFrameKey(baseKey: epoch.baseKey, kid: kid), sinceMs: monotonicMs())
        if sender.window.has(sealed.counter) || hasLeft(epochNumber, kid) { return .unopened(.replayed) }
        guard let frame = try? sealed.open(sender.key) else { return .unopened(.notAuthentic) }
        if ownNumbers.contains(kid & numberMask) {
            renewNumber()
            return .unopened(.reflected)
        }
        epoch.senders[kid] = sender
        _ = sender.window.add(sealed.counter)
        let fillsEpoch = known == nil && epoch.senders.count == sendersMax
        return .opened(OpenedFrame(frame: frame, epoch: epochNumber, fillsEpoch: fillsEpoch))
    }

    /// Frames that were on their way when the sender took a newer key have come by now.
    private func hasLeft(_ epoch: Int, _ kid: UInt64) -> Bool {
        epochs.contains { newer, held in
            guard newer > epoch, let sender = held.senders[kidOf(newer, kid & numberMask)] else { return false }
            return monotonicMs() - sender.sinceMs >= lateMs
        }
    }

    /// The gateway has sent a frame back, or a member has the same number by chance, which must not stay so.
    private mutating func renewNumber() {
        if ownNumbers.count > renewalsMax { return }
        ownNumbers.insert(randomNumber(), at: 0)
        guard let epoch = sending?.epoch else { return }
        sending = nil
        _ = useKey(epoch)
    }
}

/// Which counters were there, of the newest 1,024.
struct ReplayWindow: Sendable {
    /// A bit for each, by its remainder: an epoch may have thousands of windows.
    private var seen = [UInt64](repeating: 0, count: Int(windowSize) / 64)
    private var newest: UInt64?

    /// Also those that are too old to tell.
    func has(_ counter: UInt64) -> Bool {
        guard let newest, counter <= newest else { return false }
        return newest - counter >= windowSize || isSeen(counter)
    }

    /// False where it was there before.
    mutating func add(_ counter: UInt64) -> Bool {
        if has(counter) { return false }
        if let before = newest, counter > before, counter - before < windowSize {
            for passed in before + 1...counter { set(passed, false) }
        } else if newest.map({ counter > $0 }) ?? true {
            seen = [UInt64](repeating: 0, count: seen.count)
        }
        newest = max(newest ?? counter, counter)
        set(counter, true)
        return true
    }

    private func isSeen(_ counter: UInt64) -> Bool { seen[Int(counter % windowSize / 64)] >> (counter % 64) & 1 == 1 }

    private mutating func set(_ counter: UInt64, _ isSeen: Bool) {
        let bit: UInt64 = 1 << (counter % 64)
        if isSeen { seen[Int(counter % windowSize / 64)] |= bit } else { seen[Int(counter % windowSize / 64)] &= ~bit }
    }
}

private func kidOf(_ epoch: Int, _ number: UInt64) -> UInt64 { UInt64(epoch) << numberBits | number }

private func randomNumber() -> UInt64 { UInt64.random(in: 0...numberMask) }

private let windowSize: UInt64 = 1_024
private let numberBits: UInt64 = 48
private let numberMask: UInt64 = 0xffff_ffff_ffff
private let epochMax = 0xffff
private let epochsMax = 4

/// Of one epoch. A member who makes up more than that has the call make a new key.
private let sendersMax = 4_096

/// Frames take no longer from a sender to here.
private let lateMs = 5_000
private let renewalsMax = 4
