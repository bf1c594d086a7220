import CallsignVerify
import Foundation
import TestSupport
import XCTest

@testable import CallsignApp

/// Tests on the built server, one for the class. Where it is not built, they are skipped.
class ServerTestCase: XCTestCase {
    private struct Running: Sendable {
        let server: DevelopmentServer
        let folder: URL
        var backendKey: String?
    }

    /// One class runs at a time.
    private static let running = Locked<Running?>(nil)

    /// Of the server, beside the ones for tests.
    class var settings: [String: String] { [:] }

    var server: DevelopmentServer {
        guard let running = Self.running.with({ $0 }) else { preconditionFailure("the server does not run") }
        return running.server
    }

    override func setUp() async throws {
        if Self.running.with({ $0 != nil }) { return }
        try XCTSkipUnless(DevelopmentServer.isBuilt, "the server is not built")
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let started = Running(server: try DevelopmentServer(folder, settings: Self.settings), folder: folder)
        Self.running.with { $0 = started }
    }

    override class func tearDown() {
        let ended = running.with { running in
            defer { running = nil }
            return running
        }
        ended?.server.close()
        if let folder = ended?.folder { try? FileManager.default.removeItem(at: folder) }
    }

    /// Ends the server, and starts one with the same data whose clock is so far ahead.
    func restart(clockAheadMs: Int) throws {
        guard let before = Self.running.with({ $0 }) else { return }
        before.server.close()
        let again = try DevelopmentServer(before.folder, settings: Self.settings, clockAheadMs: clockAheadMs)
        Self.running.with { $0 = Running(server: again, folder: before.folder) }
    }

    /// The app's backend, which may make users, sign them in and suspend them.
    func backend(_ method: String, _ path: String, _ body: JSONValue) async throws -> JSONValue {
        let kept = Self.running.with { $0?.backendKey }
        let key = try kept ?? server.newServerKey("users", "sign-in", "contacts")
        Self.running.with { $0?.backendKey = key }
        return try await server.backend(key, method, path, body)
    }
}

/// The error that the act throws; nil where it throws none.
func refusal(_ act: () async throws -> Void) async -> CallsignError? {
    do {
        try await act()
        return nil
    } catch let error as CallsignError {
        return error
    } catch {
        return CallsignError("NOT_OF_CALLSIGN", "\(error)", cause: error)
    }
}
