import CallsignVerify
import Foundation
import TestSupport
import XCTest

@testable import CallsignApp

/// Tests of whole apps on the built server. One that hangs ends the run.
class ServedTests: ServerTestCase {
    private var watchdog: Task<Void, any Error>?

    override func setUp() async throws {
        try await super.setUp()
        let name = name
        watchdog = Task.detached {
            try await Task.sleep(nanoseconds: 120_000_000_000)
            fatalError("\(name) hangs")
        }
    }

    override func tearDown() async throws { watchdog?.cancel() }
}

private let people = Locked(0)

extension DevelopmentServer {
    /// As the apps of these tests see it.
    func seen(
        _ http: any HTTPTransport = platformHTTP(),
        _ sockets: (any SocketTransport)? = nil,
        nowMs: @escaping @Sendable () -> Int = systemTimeMs
    ) throws -> Server {
        try Server(url, http: http, sockets: sockets ?? TCPStompTransport(stompTcp), nowMs: nowMs, language: "en")
    }

    func app(
        _ storage: any AppStorage = MemoryAppStorage(),
        _ http: any HTTPTransport = platformHTTP(),
        _ sockets: (any SocketTransport)? = nil,
        completeness: CompletenessDemand? = nil
    ) async throws -> Callsign {
        let pins = try await developmentPins(url)
        return Callsign(server: try seen(http, sockets), pins: pins, storage: storage, completeness: completeness)
    }

    /// By a network that can be cut.
    func app(_ storage: any AppStorage = MemoryAppStorage(), by network: BreakableNetwork) async throws -> Callsign {
        try await app(storage, network, network)
    }

    func newAddress(_ name: String) -> String {
        let number = people.with { people in
            people += 1
            return people
        }
        return "\(name)-\(number)@example.com"
    }

    /// A new person with this name.
    @discardableResult
    func signIn(_ app: Callsign, _ name: String, _ address: String? = nil) async throws -> UInt64 {
        let address = address ?? newAddress(name)
        let url = url
        return try await app.signIn(address, displayName: name) { _ in try await sentCode(url, address) }.userId
    }

    /// The app of a new person.
    func person(
        _ name: String, _ http: any HTTPTransport = platformHTTP(), _ storage: any AppStorage = MemoryAppStorage()
    ) async throws -> Callsign {
        let app = try await app(storage, http)
        try await signIn(app, name)
        return app
    }

    /// The user of the storage's session proves by a code who they are.
    func prove(_ storage: any AppStorage, _ address: String) async throws {
        let session = try await Session.open(try seen(), storage)
        let before = try await code(for: address)
        let sent = try await session.ask("POST", "user/step-up", body: ["send": "code"]).member("challenge")
        var otp = before
        while otp == before { otp = try await code(for: address) }
        let proof = bodyOf(["challengeId": try sent.needText("challengeId"), "otp": otp])
        _ = try await session.request("POST", "user/step-up", body: proof)
    }

    /// Another device of the user with this address, which their first one has approved.
    func approvedDevice(
        _ first: Callsign, _ address: String, _ http: any HTTPTransport = platformHTTP()
    ) async throws -> Callsign {
        let device = try await app(MemoryAppStorage(), http)
        try await signIn(device, "Bob", address)
        try await first.devices.approve(first.nextWaiting())
        _ = try await device.devices.listState.first { if case .listed = $0 { true } else { false } }
        return device
    }
}

extension Callsign {
    /// The device that waits for this one.
    func nextWaiting() async throws -> WaitingDevice {
        for await case .listed(let waiting)? in try devices.listState.values {
            if let first = waiting.first { return first }
        }
        throw Absent(name: "waiting")
    }

    func nextRinging() async throws -> Call { try await ringing.first { _ in true } }

    func nextEvent(_ isOne: @Sendable (CallsignEvent) -> Bool) async throws -> CallsignEvent { try await events.first(where: isOne) }
}

extension Watched {
    @discardableResult
    func first(_ isOne: @Sendable (Value) -> Bool) async throws -> Value { try await values.first(where: isOne) }
}

extension AsyncStream where Element: Sendable {
    /// Throws where the stream ends before.
    @discardableResult
    func first(where isOne: @Sendable (Element) -> Bool) async throws -> Element {
        for await each in self where isOne(each) { return each }
        throw Absent(name: "next")
    }
}

extension Call {
    func becomes(_ wanted: CallState) async throws { try await state.first { $0 == wanted } }

    /// The key of this epoch.
    func key(epoch: Int) async throws -> EpochKey { try known(await key.first { $0?.epoch == epoch }, "key") }

    func ended() async throws -> CallEnding {
        for await case .ended(let ending) in events { return ending }
        throw Absent(name: "ended")
    }
}

/// Makes two people contacts.
func befriend(_ ann: Callsign, _ bob: Callsign) async throws {
    try await ann.contacts.requestByLink(bob.contacts.shareLink())
    try await bob.contacts.accept(known(ann.userId, "userId"))
}

/// Waits until both have the same newest key.
func haveOneKey(_ one: Call, _ other: Call) async throws {
    let (changes, telling) = AsyncStream<Void>.makeStream()
    let reading = [one, other].map { call in
        Task {
            for await _ in call.key.values { telling.yield(()) }
        }
    }
    defer { for each in reading { each.cancel() } }
    try await changes.first { one.fingerprint != nil && one.fingerprint == other.fingerprint }
}

/// The error that the act fails with.
func failure(_ act: @Sendable () async throws -> Void) async throws -> CallsignError {
    do {
        try await act()
    } catch let error as CallsignError {
        return error
    }
    throw Absent(name: "failure")
}

/// It did not come.
struct Absent: Error {
    let name: String
}
