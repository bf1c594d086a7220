import CallsignVerify
import Foundation
import TestSupport
import XCTest

@testable import CallsignApp

/// Tests on the built server, one for the class; skipped where it is not built.
class ServedTests: XCTestCase {
    private static let running = Locked<[ObjectIdentifier: Served]>([:])
    private var watchdog: Task<Void, any Error>?

    /// Of the server.
    class var settings: [String: String] { [:] }

    var server: Served {
        get throws { try known(Self.running.with { $0[ObjectIdentifier(Self.self)] }, "server") }
    }

    override class func setUp() {
        guard DevelopmentServer.isBuilt, let served = try? Served(settings) else { return }
        running.with { $0[ObjectIdentifier(self)] = served }
    }

    override class func tearDown() {
        running.with { $0.removeValue(forKey: ObjectIdentifier(self)) }?.close()
    }

    override func setUpWithError() throws {
        try XCTSkipUnless(DevelopmentServer.isBuilt, "the server is not built")
        let name = name
        watchdog = Task.detached {
            try await Task.sleep(nanoseconds: 120_000_000_000)
            fatalError("\(name) hangs")
        }
    }

    override func tearDown() { watchdog?.cancel() }
}

/// A server with its people.
final class Served: Sendable {
    private let running: Locked<DevelopmentServer>
    private let folder: URL
    private let settings: [String: String]
    private let people = Locked(0)

    init(_ settings: [String: String] = [:]) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("callsign-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        self.settings = settings
        running = Locked(try DevelopmentServer(folder, settings: settings))
    }

    var development: DevelopmentServer { running.with { $0 } }
    var url: String { development.url }

    /// Ends the server, and starts one with the same data whose clock is so far ahead.
    func restart(clockAheadMs: Int) throws {
        development.close()
        let next = try DevelopmentServer(folder, settings: settings, clockAheadMs: clockAheadMs)
        running.with { $0 = next }
    }

    func close() {
        development.close()
        try? FileManager.default.removeItem(at: folder)
    }

    /// As the apps of these tests see it.
    func seen(
        _ http: any HTTPTransport = URLSessionHTTP(),
        _ sockets: (any SocketTransport)? = nil,
        nowMs: @escaping @Sendable () -> Int = systemTimeMs
    ) throws -> Server {
        try Server(url, http: http, sockets: sockets ?? TCPStompTransport(development.stompTcp), nowMs: nowMs)
    }

    func app(
        _ storage: any AppStorage = MemoryAppStorage(),
        _ http: any HTTPTransport = URLSessionHTTP(),
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
        "\(name)-\(people.with { people in people += 1; return people })@example.org"
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
        _ name: String, _ http: any HTTPTransport = URLSessionHTTP(), _ storage: any AppStorage = MemoryAppStorage()
    ) async throws -> Callsign {
        let app = try await app(storage, http)
        try await signIn(app, name)
        return app
    }

    /// The user of the storage's session proves by a code who they are.
    func prove(_ storage: any AppStorage, _ address: String) async throws {
        let session = try await Session.open(try seen(), storage)
        let before = try await development.code(for: address)
        let sent = try await session.ask("POST", "user/step-up", body: ["send": "code"]).member("challenge")
        var otp = before
        while otp == before { otp = try await development.code(for: address) }
        let proof = bodyOf(["challengeId": try sent.needText("challengeId"), "otp": otp])
        _ = try await session.request("POST", "user/step-up", body: proof)
    }

    /// Another device of the user with this address, which their first one has approved.
    func approvedDevice(
        _ first: Callsign, _ address: String, _ http: any HTTPTransport = URLSessionHTTP()
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
