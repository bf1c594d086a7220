import CallsignApp
import CallsignVerify
import Foundation

/// The built server of this project as a process of its own, in development: its inbox has the codes.
public final class DevelopmentServer: @unchecked Sendable {
    public enum ServerError: Error {
        case ended(stderr: String)
        case noKey(printed: String)
    }

    private static let root = projectRoot
    private static let program = root.appendingPathComponent("dist/src/main.js")

    /// After `npm ci` and a build.
    public static var isBuilt: Bool {
        FileManager.default.fileExists(atPath: program.path)
            && FileManager.default.fileExists(atPath: root.appendingPathComponent("node_modules").path)
    }

    public let url: String

    /// Where it speaks STOMP without WebSocket, such as `127.0.0.1:41337`.
    public let stompTcp: String
    private let serverApi: String
    private let dataFolder: URL
    private let process: Process
    private let http = URLSessionHTTP()

    /// Returns when the server is ready.
    public init(_ dataFolder: URL, settings: [String: String] = [:], clockAheadMs: Int = 0) throws {
        self.dataFolder = dataFolder
        var environment = [
            "CALLSIGN_DATA_DIR": dataFolder.path,
            "CALLSIGN_HTTP_PORT": "0",
            "CALLSIGN_GRPC_PORT": "0",
            "CALLSIGN_ADMIN_PORT": "0",
            "CALLSIGN_SERVER_API_PORT": "0",
            "CALLSIGN_STOMP_TCP_PORT": "0",
            "CALLSIGN_RATE_LIMITS": "off",
            "CALLSIGN_FRONTS": "0",
        ].merging(settings) { $1 }
        if clockAheadMs != 0 {
            let shiftedClock = Self.root.appendingPathComponent("dist/test/support/shifted-clock.js")
            environment["NODE_OPTIONS"] = "--import=\(shiftedClock.absoluteString)"
            environment["CLOCK_AHEAD_MS"] = "\(clockAheadMs)"
        }
        process = nodeProcess([Self.program.path, "--dev"], environment)
        let stderr = dataFolder.appendingPathComponent("stderr")
        _ = FileManager.default.createFile(atPath: stderr.path, contents: nil)
        process.standardError = try FileHandle(forWritingTo: stderr)
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        // Its first line says that it is ready.
        guard let ready = firstLine(output.fileHandleForReading).flatMap({ JSONValue(octets: $0) }),
            let url = ready["http"]?.string, let serverApi = ready["serverApi"]?.string, let stompTcp = ready["stompTcp"]?.string
        else { throw ServerError.ended(stderr: (try? String(contentsOf: stderr, encoding: .utf8)) ?? "") }
        self.url = url
        self.serverApi = serverApi
        self.stompTcp = stompTcp
    }

    /// A key of the server API with these scopes, as the operator makes it.
    public func newServerKey(_ scopes: String...) throws -> String {
        let script = Self.root.appendingPathComponent("dist/scripts/server-key.js").path
        let arguments = ["create", "--dev", "--url", serverApi, "--name", "test", "--scopes", scopes.joined(separator: ",")]
        let command = nodeProcess([script] + arguments, ["CALLSIGN_DATA_DIR": dataFolder.path])
        let output = Pipe()
        command.standardOutput = output
        try command.run()
        let printed = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        command.waitUntilExit()
        guard printed.hasPrefix("csk_") else { throw ServerError.noKey(printed: printed) }
        return printed
    }

    /// What the backend with the key is answered.
    public func backend(_ key: String, _ method: String, _ path: String, _ body: JSONValue) async throws -> JSONValue {
        let request = HTTPRequest(
            method: method,
            url: "\(serverApi)/server/api/v1/\(path)",
            headers: ["authorization": "Bearer \(key)", "content-type": "application/json"],
            body: Array(body.text.utf8),
            octetsMax: 1024 * 1024,
            timeoutMs: 15_000
        )
        return try known(await http.send(request).body.flatMap { JSONValue(octets: $0) }, path)
    }

    /// The newest code for the address. It leaves after the answer to the request that asked for it.
    public func code(for email: String) async throws -> String {
        let request = HTTPRequest(method: "GET", url: "\(url)/dev/inbox?to=\(email)", octetsMax: 1024 * 1024, timeoutMs: 15_000)
        while true {
            let inbox = try await http.send(request).body.flatMap { JSONValue(octets: $0) }
            if let letter = inbox?.list("items").first { return try letter.text("otp") }
            try await Task.sleep(nanoseconds: 10_000_000)
        }
    }

    public func close() {
        process.terminate()
        process.waitUntilExit()
    }
}

/// The server and its commands refuse settings that they do not know, such as those of these tests.
func nodeProcess(_ arguments: [String], _ environment: [String: String]) -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["node"] + arguments
    let own = ProcessInfo.processInfo.environment.filter { ["PATH", "HOME"].contains($0.key) }
    process.environment = own.merging(environment) { $1 }
    return process
}

/// Without its line end; nil where the output ends before.
private func firstLine(_ output: FileHandle) -> [UInt8]? {
    var line: [UInt8] = []
    while true {
        let more = output.availableData
        if more.isEmpty { return nil }
        line += more
        if let end = line.firstIndex(of: 0x0a) { return Array(line[..<end]) }
    }
}
