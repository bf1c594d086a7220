// How a call shows what `DeviceCalls.swift` decides.
import CallsignVerify

/// The device as far as a call of it needs it.
@CallsignActor protocol CallShell: AnyObject, Sendable {
    nonisolated var userId: UInt64 { get }

    /// Returns when all of it is done.
    func ask(_ inputOf: @escaping @CallsignActor (_ command: Int) -> CallInput) async throws -> Call?

    func keysOf(_ call: DeviceCall) -> [EpochKey]

    /// With the names that count now.
    nonisolated func named(_ person: Person) -> Person

    /// Asks for these people, or for those of them that a key can be sealed for.
    func leaveOut<Value: Sendable>(
        _ people: [UInt64], _ without: Without, _ ask: @escaping @CallsignActor ([UInt64]) async throws -> Value
    ) async throws -> Value
}

extension CallShell {
    nonisolated func named(_ participant: CallParticipant) -> CallParticipant {
        var shown = participant
        shown.name = named(participant.person).name
        return shown
    }
}

extension Call {
    /// As it was decided.
    func become(_ call: DeviceCall) {
        let before = now.with { $0 }
        let isSame = call.key == before.call.key && call.phase == before.call.phase
        let keys = isSame ? before.keys : shell.keysOf(call)
        now.with { $0 = (call, keys) }
        key.set(keys.first)
        sendingKey.set(sendingKeyOf(call, keys))
        onNames()
        state.set(stateOf(call.phase))
    }

    /// People may have other names now.
    func onNames() {
        let (call, keys) = now.with { $0 }
        let people = participantsOf(call, shell)
        participants.set(people)
        forLiveKit.set(liveKitOf(call, keys, people, shell.userId))
    }

    func tell(_ event: CallEvent) {
        news.tell(event)
        if case .stateChanged(.ended) = event, let ending { news.tellLast(.ended(ending)) }
    }
}

func participantsOf(_ call: DeviceCall, _ shell: any CallShell) -> [CallParticipant] {
    (call.record?.participants ?? []).map { participant in
        shell.named(participant).reached(as: unreachable(in: call, participant))
    }
}

func sendingKeyOf(_ call: DeviceCall, _ keys: [EpochKey]) -> EpochKey? { keys.first { $0.epoch == call.sending.epoch } }

func liveKitOf(_ call: DeviceCall, _ keys: [EpochKey], _ people: [CallParticipant], _ userId: UInt64) -> LiveKitCall {
    LiveKitCall(
        callId: call.callId,
        userId: userId,
        isOver: call.phase.isEnded,
        keys: keys,
        sendingEpoch: call.sending.epoch,
        participants: people
    )
}

/// The device of a name, `<userId>_<deviceId>`.
func keyDeviceOf(_ name: String) -> KeyDevice? {
    let parts = name.utf8.split(separator: UInt8(ascii: "_")).map { uint64(String(decoding: $0, as: UTF8.self)) }
    guard parts.count == 2, let userId = parts[0], let deviceId = parts[1] else { return nil }
    return KeyDevice(userId: userId, deviceId: deviceId)
}
