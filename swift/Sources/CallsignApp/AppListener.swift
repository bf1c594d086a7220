// What an app does with the news of its connection.
import CallsignVerify

@CallsignActor final class AppListener: ConnectionListener {
    private weak var app: Callsign?
    weak var connection: Connection?
    private let session: Session
    private let registration: DeviceRegistration

    init(_ app: Callsign, _ session: Session, _ registration: DeviceRegistration) {
        self.app = app
        self.session = session
        self.registration = registration
    }

    func onState(_ state: ConnectionState, failures: Int) {
        guard let app else { return }
        app.failureCount.with { $0 = failures }
        let calls = app.active.with { $0 }?.calls
        if state != .connected { calls?.onDisconnected() }
        app.connection.set(state)
        if state == .elsewhere { calls?.closeAll(.moved) }
    }

    func onConnected() async throws {
        guard let app, let begun = app.active.with({ $0 }) else { return }
        let connectedAtMs = begun.connection.connectedAtMs
        var waitMs = Self.readAgainMs
        while begun.connection.state == .connected && begun.connection.connectedAtMs == connectedAtMs {
            do {
                let isAll = try await isAllowed { try await begun.calls.onConnected() }
                // The app may have been closed meanwhile: it shows nobody then.
                try Task.checkCancellation()
                try await app.showUser(session)
                try Task.checkCancellation()
                try await begun.devices.load()
                if isAll { try await begun.contacts.loadNames() }
                // The server ends the connection once the device is approved.
                if isAll { app.tell(.ready) }
                return
            } catch let error as CallsignError {
                app.report(error)
                if error.hasCode(CallsignError.LocalCode.keysRefused) { return }
            }
            try await pause(forMs: waitMs)
            waitMs = min(2 * waitMs, Self.readAgainMsMax)
        }
    }

    func onEvent(_ event: [String: JSONValue]) async throws {
        guard let app else {
            // Nobody has handled it: the next start gets it.
            connection?.abort()
            throw offline()
        }
        let begun = try app.assertActive()
        let type = try event.needText("type")
        if app.isOwnStart(type, event.text("sessionId")) { return }
        try begun.names.onEvent(event)
        if type == "profile_changed" { app.onProfile(try userOf(event)) }
        if type == "badge" {
            app.badge.set(try badgeOf(event))
        } else if let badge = event["badge"]?.object {
            app.badge.set(try badgeOf(badge))
        }
        defer { app.tell(.message(type: type, members: event)) }
        // Before the connection ends, which says no more than that the session is over.
        let ending = type == "session_revoked" ? endingBy(event.text("reason")) : .left
        if ending == .suspended { begun.calls.closeAll(ending) }
        try await begun.calls.onMessage(event)
        if Self.deviceEvents.contains(type) { try await begun.devices.load() }
    }

    func onDeviceMissing() async throws {
        guard let app else { return }
        try await registration.register(app.device)
    }

    func onTrouble(_ error: any Error) { app?.report(error) }

    private static let readAgainMs = 10_000
    private static let readAgainMsMax = 600_000
    private static let deviceEvents: Set = ["device_added", "device_removed", "device_list_changed", "device_list_reset"]
}
