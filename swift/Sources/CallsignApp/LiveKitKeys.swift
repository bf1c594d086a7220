import CallsignCrypto
import CallsignVerify

// A call's keys as LiveKit's key providers take them: one for each device and epoch, by the label that the device has at the
// gateway. The server gives the labels, and the keys are of devices: swapped labels give silence, not another person's sound.

/// For `setKey` of a key provider.
public struct LiveKitSlot: Sendable, Equatable {
    public var identity: String
    public var key: String
    public var keyIndex: Int

    /// This device seals with it; it comes last, since such providers send with the newest index.
    public var isSending: Bool

    /// Random octets, since the epoch has ended.
    public var isOver: Bool
}

/// For the frames of one device in one epoch. A string, since all LiveKit SDKs derive the same AES key from a string alone.
/// Throws `malformed` for what is no call or epoch.
public func liveKitKey(
    _ callKey: [UInt8], callId: String, epoch: Int, userId: UInt64, deviceId: UInt64
) throws -> String {
    guard let call = uint64(callId), let number = UInt32(exactly: epoch) else {
        throw LogError.malformed("\(callId) is no call, or \(epoch) is no epoch")
    }
    let numbers = bigEndianOctets(call, count: 8) + bigEndianOctets(UInt64(number), count: 4)
    let names = bigEndianOctets(userId, count: 8) + bigEndianOctets(deviceId, count: 8)
    let info = Array("callsign livekit v1\n".utf8) + numbers + names
    return encodeBase64(HKDF.derive(.sha256, secret: callKey, info: info, length: 32))
}

extension Call {
    /// Throws `MEDIA_UNSUPPORTED` unless the server has keys of 128 bits, the only ones that LiveKit derives on a phone. By this
    /// call the app allows them.
    public nonisolated func allowAES128() throws { try assertAES128(media) }
}

func assertAES128(_ media: CallGateway?) throws {
    if media?.keySize == 128 { return }
    let bits = media?.keySize.map { "\($0)" } ?? "null"
    throw CallsignError("MEDIA_UNSUPPORTED", "The server has keys of \(bits) bits, and LiveKit on a phone none but of 128.")
}

/// A call as far as its media needs it. `sendingEpoch` is 0 without a key.
struct LiveKitCall: Sendable, Equatable {
    var callId: String
    var userId: UInt64
    var isOver: Bool
    var keys: [EpochKey]
    var sendingEpoch: Int
    var participants: [CallParticipant]
}

/// Each key of each device, now and as they come and end. Ends with the call.
func slotsOf(
    _ calls: Watched<LiveKitCall>, monotonicMs: @escaping @Sendable () -> Int = monotonicNowMs
) -> AsyncStream<LiveKitSlot> {
    AsyncStream { found in
        let following = Task {
            let slots = LiveKitSlots(monotonicMs: monotonicMs)
            while !Task.isCancelled {
                let call = calls.value
                for slot in slots.follow(call) { found.yield(slot) }
                if call.isOver { break }
                await change(of: calls, from: call, atMostMs: slots.waitMs)
            }
            found.finish()
        }
        found.onTermination = { _ in following.cancel() }
    }
}

/// Waits until the call is another one, or the time is over.
private func change(of calls: Watched<LiveKitCall>, from call: LiveKitCall, atMostMs: Int?) async {
    await withTaskGroup(of: Void.self) { group in
        group.addTask {
            for await next in calls.values where next != call { return }
        }
        if let atMostMs {
            group.addTask { try? await Task.sleep(for: .milliseconds(atMostMs)) }
        }
        await group.next()
        group.cancelAll()
    }
}

final class LiveKitSlots {
    private struct Place: Hashable {
        let identity: String
        let keyIndex: Int
    }

    private let monotonicMs: () -> Int
    private var held: [(place: Place, slot: LiveKitSlot)] = []
    private var comeAtMs: [Int: Int] = [:]

    /// Until the next epoch may come, if one waits.
    private(set) var waitMs: Int?

    init(monotonicMs: @escaping () -> Int) { self.monotonicMs = monotonicMs }

    /// What is to be set now, in this order.
    func follow(_ call: LiveKitCall) -> [LiveKitSlot] {
        waitMs = noteEpochs(call.keys.map(\.epoch).sorted())
        let slots = call.isOver ? [] : slotsOf(call)
        let over = held.filter { before in !slots.contains { $0.place == before.place } }.map { overOf($0.slot) }
        let news = slots.filter { place, slot in
            let before = held.first { $0.place == place }?.slot
            return before?.key != slot.key || slot.isSending && before?.isSending == false
        }.map(\.slot)
        held = slots
        let sending = slots.first { $0.slot.isSending }?.slot
        let isSet = (news + over).contains { $0.identity == sending?.identity }
        return news.filter { !$0.isSending } + over + (isSet ? [sending].compactMap { $0 } : [])
    }

    /// This device seals with the call's sending key, and opens frames with each key that it holds.
    private func slotsOf(_ call: LiveKitCall) -> [(place: Place, slot: LiveKitSlot)] {
        let ready = call.keys.filter { comeAtMs[$0.epoch] != nil }.sorted { $0.epoch < $1.epoch }
        let used = ready.filter { $0.epoch <= call.sendingEpoch }
        guard let own = call.participants.first(where: { $0.userId == call.userId }) else { return [] }
        let others = call.participants.filter { $0.userId != own.userId && $0.identity != own.identity }
        var slots: [(place: Place, slot: LiveKitSlot)] = []
        for one in others + [own] {
            guard let identity = one.identity, let deviceId = one.deviceId, one.state == .joined else { continue }
            let isOwn = one.userId == own.userId
            for key in isOwn ? used : ready {
                guard let octets = key.octets,
                    let text = try? liveKitKey(
                        octets, callId: call.callId, epoch: key.epoch, userId: one.userId, deviceId: deviceId)
                else { continue }
                let place = Place(identity: identity, keyIndex: key.epoch % ringSize)
                let isSending = isOwn && key.epoch == used.last?.epoch
                let slot = LiveKitSlot(
                    identity: identity, key: text, keyIndex: place.keyIndex, isSending: isSending, isOver: false)
                let before = slots.firstIndex { $0.place == place }
                if let before { slots[before].slot = slot } else { slots.append((place, slot)) }
            }
        }
        return slots
    }

    /// Notes which epochs are here, so that no key meets one in its slot whose frames may still be on their way: they are opened
    /// for a minute. Gives how long the next one has to wait, if there is one.
    private func noteEpochs(_ epochs: [Int]) -> Int? {
        let nowMs = monotonicMs()
        comeAtMs = comeAtMs.filter { epochs.contains($0.key) || nowMs - $0.value < spreadMs }
        for epoch in epochs where comeAtMs[epoch] == nil {
            let recent = comeAtMs.values.filter { nowMs - $0 < spreadMs }
            if recent.count >= epochsMax, let oldest = recent.min() { return oldest + spreadMs - nowMs }
            comeAtMs[epoch] = nowMs
        }
        return nil
    }

    /// Its key is known to no device.
    private func overOf(_ slot: LiveKitSlot) -> LiveKitSlot {
        var over = slot
        over.key = encodeBase64(randomOctets(32))
        over.isSending = false
        over.isOver = true
        return over
    }
}

/// The size of the key ring in LiveKit's SDKs.
private let ringSize = 16

/// The most epochs that are taken within the time that an old one still opens frames.
private let epochsMax = 14
private let spreadMs = 60_000
