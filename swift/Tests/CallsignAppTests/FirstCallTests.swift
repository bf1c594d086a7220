import CallsignVerify
import Foundation
import TestSupport
import XCTest

/// The first program, as a process of its own.
final class FirstCallTests: ServedTests {
    private let program = projectRoot.appendingPathComponent("swift/Sources/FirstCall/main.swift")

    func testTheFirstProgramCallsAPersonAndIsCalledBack() async throws {
        let bob = try TypeScriptParticipant(server.url)
        defer { bob.close() }
        let bobId = try await bob.text("signIn", .string(server.newAddress("Bob")), "Bob")
        let process = Process()
        // Beside these tests.
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appendingPathComponent("FirstCall")
        process.arguments = [server.url, bobId]
        process.environment = ["CALLSIGN_STOMP_TCP": server.stompTcp]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let kimId = try await bob.text("acceptFirst")
        let called = try await bob.view("answer", .string(bob.text("ringing")))
        try await bob.tell("end", .string(called.text("callId")))
        let back = try await bob.view("call", .string(kimId))
        let printed = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        XCTAssertEqual(process.terminationStatus, 0)
        let first = "called: \(try called.text("fingerprint"))"
        let second = "called back: \(try back.text("fingerprint")), verified: true"
        XCTAssertEqual(printed, "\(first)\n\(second)\n")
    }

    func testTheFirstProgramHas40LinesAtMost() throws {
        let text = try String(contentsOf: program, encoding: .utf8)
        XCTAssertLessThanOrEqual(text.utf8.count { $0 == 0x0a }, 40)
    }
}
