#if canImport(Combine)
import Combine
#endif
import CallsignApp
import Foundation

/// A call as the system shows it: CallKit, or LiveCommunicationKit where an app may not use CallKit.
struct SystemCall: Equatable {
    let uuid: UUID

    /// A user's id.
    let handle: String
    let name: String
    let isVideo: Bool
}

/// The system's side of the phone.
@MainActor protocol CallSystem: AnyObject {
    /// Rings. Then it says whether the system shows it: not in a Focus, or during another call.
    func ring(_ call: SystemCall, _ reported: @escaping @MainActor (_ isShown: Bool) -> Void)

    /// False where the system refuses, such as during another call.
    func place(_ call: SystemCall) async -> Bool
    func connected(_ uuid: UUID)
    func ended(_ uuid: UUID, _ reason: SystemEnd)

    /// As if the person had answered on the system's screen, or hung up there.
    func answer(_ uuid: UUID)
    func hangUp(_ uuid: UUID)
}

/// Shows calls to the person and to the system, each once: it rings by push and by socket.
@MainActor final class Phone: ObservableObject {
    private struct Shown {
        let call: SystemCall
        let callId: String
        var isFollowed = false
    }

    /// The call that has the screen.
    @Published private(set) var screen: CallScreen?
    var system: (any CallSystem)?
    private let me: Callsign
    private let asking: Asking
    private var shown: [UUID: Shown] = [:]
    private var hungUp: Set<UUID> = []

    init(_ me: Callsign, _ asking: Asking) {
        self.me = me
        self.asking = asking
    }

    func rings(_ uuid: UUID) -> Bool { shown[uuid] != nil }

    /// By push: the call itself may come later, by the socket. Waits for nothing: Apple ends an app that reports too late.
    func ring(_ report: CallReport, _ reported: @escaping @MainActor () -> Void) {
        let call = SystemCall(
            uuid: report.uuid, handle: report.handle, name: report.caller.text(), isVideo: report.isVideo)
        begin(call, report.callId, reported)
        if let reason = report.endsAs { return stop(report.uuid, reason) }
        Task {
            try? await Task.sleep(for: .milliseconds(report.forMs))
            if callOf(report.callId) == nil { end(report.uuid, .unanswered) }
        }
    }

    /// By push or socket, whichever was first.
    func ring(_ call: Call, _ reported: @escaping @MainActor () -> Void = {}) {
        let uuid = callUUID(call.callId)
        let name = shownName(call.caller.name, isContact: call.caller.isContact != false).text()
        let shownCall = SystemCall(uuid: uuid, handle: "\(call.caller.userId)", name: name, isVideo: call.isVideo)
        // Declined before the socket told of it.
        if hungUp.contains(uuid) { return }
        if rings(uuid) { reported() } else { begin(shownCall, call.callId, reported) }
        follow(call)
    }

    /// A call that this user has begun.
    func place(to userId: UInt64, name: String, isVideo: Bool = false) async throws {
        let call = try await me.call(userId, isVideo: isVideo)
        let uuid = callUUID(call.callId)
        // Both have called each other: the other person's call goes on, and is answered.
        if call.isIncoming { return ring(call) { self.system?.answer(uuid) } }
        let placed = SystemCall(uuid: uuid, handle: "\(userId)", name: name, isVideo: isVideo)
        shown[uuid] = Shown(call: placed, callId: call.callId)
        guard await system?.place(placed) != false else {
            shown[uuid] = nil
            asking.notice = Word.otherCall.text
            return try await call.end()
        }
        follow(call)
    }

    /// By a push that says so, or by the server's time.
    func stop(_ uuid: UUID, _ reason: SystemEnd) {
        let state = shown[uuid].flatMap { callOf($0.callId)?.state.value }
        if state == nil || state == .ringing || state == .ended { end(uuid, reason) }
    }

    /// False where there is no such call any more. A question about keys leaves the call as it is: the app's screen asks.
    func answer(_ uuid: UUID) async -> Bool {
        guard let callId = shown[uuid]?.callId, let call = await awaitCall(callId) else {
            end(uuid, .failed)
            return false
        }
        do {
            if call.state.value == .ringing { _ = try await asking.answer(call) }
            return true
        } catch {
            asking.tell(error)
            return false
        }
    }

    /// Declines what rings, and leaves or ends the rest.
    func hangUp(_ uuid: UUID, reason: DeclineReason = .declined) {
        guard let callId = shown.removeValue(forKey: uuid)?.callId else { return }
        hungUp.insert(uuid)
        asking.start { [self] in
            defer { hungUp.remove(uuid) }
            guard let call = await awaitCall(callId) else { return }
            if call.isIncoming && call.state.value == .ringing {
                try await call.decline(reason)
            } else if call.isHost || call.participants.value.count <= 2 {
                try await call.end()
            } else {
                try await call.leave()
            }
        }
    }

    /// The system has forgotten them all.
    func hangUpAll() {
        for uuid in shown.keys { hangUp(uuid) }
    }

    /// After a push without the key, the call comes with the connection. Nil where it does not.
    func awaitCall(_ callId: String) async -> Call? {
        let coming = Task { [me] () -> Call? in
            for await calls in me.calls.values {
                if let call = calls.first(where: { $0.callId == callId }) { return call }
            }
            return nil
        }
        let limit = Task {
            try? await Task.sleep(for: connectedWithin)
            coming.cancel()
        }
        defer { limit.cancel() }
        return await coming.value
    }

    private func callOf(_ callId: String) -> Call? { me.calls.value.first { $0.callId == callId } }

    private func begin(_ call: SystemCall, _ callId: String, _ reported: @escaping @MainActor () -> Void) {
        let isNew = shown[call.uuid] == nil
        if isNew { shown[call.uuid] = Shown(call: call, callId: callId) }
        system?.ring(call) { [weak self] isShown in
            // It rings on at the user's other devices. One that rings here already is refused too.
            if isNew && !isShown { self?.shown[call.uuid] = nil }
            reported()
        }
    }

    private func end(_ uuid: UUID, _ reason: SystemEnd) {
        if shown.removeValue(forKey: uuid) != nil { system?.ended(uuid, reason) }
    }

    private func follow(_ call: Call) {
        let uuid = callUUID(call.callId)
        guard shown[uuid]?.isFollowed == false else { return }
        shown[uuid]?.isFollowed = true
        Task {
            var wasActive = false
            for await state in call.state.values {
                if state == .active && !wasActive {
                    wasActive = true
                    if !call.isIncoming { system?.connected(uuid) }
                }
                if state == .ended { break }
            }
            // Nil where the user has ended it here: the system knows.
            if let reason = call.ending.flatMap(SystemEnd.init) { end(uuid, reason) } else { end(uuid, .remoteEnded) }
        }
        Task { await draw(call) }
    }

    private func draw(_ call: Call) async {
        for await _ in changes(call) {
            screen = CallScreen(call)
            if call.state.value == .ended { break }
        }
        // A second call may be ringing.
        if screen?.callId == call.callId { screen = me.calls.value.first { $0.state.value != .ended }.map(CallScreen.init) }
    }

    /// Whatever of it has changed.
    private func changes(_ call: Call) -> AsyncStream<Void> {
        AsyncStream { changed in
            let readers = [
                Task { for await _ in call.state.values { changed.yield() } },
                Task { for await _ in call.key.values { changed.yield() } },
                Task { for await _ in call.participants.values { changed.yield() } },
            ]
            changed.onTermination = { _ in readers.forEach { $0.cancel() } }
        }
    }
}

/// What the call screen shows: the call's people, its state, and the fingerprint of its key.
struct CallScreen: Equatable {
    let callId: String
    let uuid: UUID
    let people: String

    /// They may have any name, also that of a contact.
    let isStranger: Bool
    let state: CallState
    let canAnswer: Bool
    let fingerprint: String?

    init(_ call: Call) {
        callId = call.callId
        uuid = callUUID(call.callId)
        people = call.participants.value.map(\.name).joined(separator: ", ")
        isStranger = call.caller.isContact == false
        state = call.state.value
        canAnswer = call.isIncoming && state == .ringing
        fingerprint = call.fingerprint
    }
}

private let connectedWithin = Duration.seconds(10)
