import CallsignVerify
import Foundation
import TestSupport
import XCTest

@testable import CallsignApp

final class FileAppStorageTests: XCTestCase {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    private var state: URL { folder.appendingPathComponent("state") }
    private var storage: FileAppStorage { FileAppStorage(folder: state) }

    override func setUpWithError() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    override func tearDownWithError() throws { try FileManager.default.removeItem(at: folder) }

    private func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: state.path).sorted() }

    private func permissions(_ file: URL) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
    }

    private func text(_ key: String) async throws -> String? { try await storage.get(key) }

    func testTextsOutlastTheStorageAndCanBeTakenAway() async throws {
        var read = try await text("a")
        XCTAssertNil(read)
        for written in ["", "ä\nsecond line\r\n", "sha256 0\n"] {
            try await storage.put("a", written)
            read = try await text("a")
            XCTAssertEqual(read.map { Array($0.utf8) }, Array(written.utf8))
        }
        for _ in 0..<2 { try await storage.put("a", nil) }
        read = try await text("a")
        XCTAssertNil(read)
        XCTAssertEqual(try files(), [])
    }

    func testOneFileForEachKeyWhateverIsInItForItsOwnerAlone() async throws {
        let keys = ["a", "A", "../a b", "..", "A/ä", "A/a\u{308}", "%", "%41"]
        for key in keys { try await storage.put(key, "text of \(Array(key.utf8))") }
        for key in keys {
            let read = try await text(key)
            XCTAssertEqual(read, "text of \(Array(key.utf8))")
        }
        XCTAssertEqual(Set(try files().map { $0.lowercased() }).count, keys.count)
        XCTAssertEqual(try permissions(state), 0o700)
        for name in try files() { XCTAssertEqual(try permissions(state.appendingPathComponent(name)), 0o600) }
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: folder.path), ["state"])
    }

    func testOfManyWritesAtOnceOneStaysWhole() async throws {
        let storage = storage
        let texts = (0..<20).map { String(repeating: "\($0)", count: 5_000) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for text in texts { group.addTask { try await storage.put("a", text) } }
            try await group.waitForAll()
        }
        let read = try await known(text("a"), "a")
        XCTAssertTrue(texts.contains(read))
        XCTAssertEqual(try files(), ["a.txt"])
    }

    func testAWriteThatFailsLeavesTheTextOfBeforeAndTheNextOnePasses() async throws {
        try await storage.put("a", "old")
        let inTheWay = state.appendingPathComponent("a.txt.new")
        try FileManager.default.createDirectory(at: inTheWay, withIntermediateDirectories: true)
        let code = await codeOf { try await storage.writeText("a", "new") }
        XCTAssertEqual(code, "STORAGE_FAILED")
        var read = try await text("a")
        XCTAssertEqual(read, "old")
        try FileManager.default.removeItem(at: inTheWay)
        try await storage.put("a", "new")
        read = try await text("a")
        XCTAssertEqual(read, "new")
    }

    func testWhatACrashLeftBesideCountsForNothingAndKeepsNoneOfItsPermissions() async throws {
        try await storage.put("a", "old")
        let beside = state.appendingPathComponent("a.txt.new")
        try Data("sha25".utf8).write(to: beside)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: beside.path)
        var read = try await text("a")
        XCTAssertEqual(read, "old")
        try await storage.put("a", "new")
        read = try await text("a")
        XCTAssertEqual(read, "new")
        XCTAssertEqual(try permissions(state.appendingPathComponent("a.txt")), 0o600)
    }

    func testAFileCutOrChangedAnywhereIsAnErrorThatNamesTheKeyAndStaysAsItIs() async throws {
        try await storage.put("session", "tokens")
        let file = state.appendingPathComponent("session.txt")
        let octets = [UInt8](try Data(contentsOf: file))
        let changed = octets.indices.map { octets.changed(at: $0) }
        let others = [octets + [10], [UInt8](repeating: 0, count: octets.count), octets + [0xff]]
        for damaged in changed + octets.cut + others {
            try Data(damaged).write(to: file)
            do {
                _ = try await text("session")
                XCTFail("\(damaged)")
            } catch let error as CallsignError {
                XCTAssertEqual([error.code, error.members.text("key")], ["STORAGE_CORRUPT", "session"])
            }
            XCTAssertEqual([UInt8](try Data(contentsOf: file)), damaged)
        }
        try Data(octets).write(to: file)
        let read = try await text("session")
        XCTAssertEqual(read, "tokens")
    }

    #if os(Linux)
    /// Another process writes one text after another, and says so after each; it is killed at several moments.
    func testAProcessThatIsKilledWhileItWritesLeavesAWholeTextAtLeastTheLastOneThatWasPut() async throws {
        for puts in [1, 3, 8] {
            let (process, output) = (Process(), Pipe())
            process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
            process.arguments = ["CallsignAppTests.EndlessWriterTests/testWritesUntilItIsKilled"]
            process.environment = ProcessInfo.processInfo.environment.merging([writerFolder: state.path]) { $1 }
            process.standardOutput = output
            try process.run()
            var lines: [UInt8] = []
            func numbers() -> [Int] {
                lines.split(separator: 0x0a, omittingEmptySubsequences: false).dropLast()
                    .compactMap { Int(String(decoding: $0, as: UTF8.self)) }
            }
            while numbers().count < puts {
                let more = output.fileHandleForReading.availableData
                try XCTSkipIf(more.isEmpty, "the tests can't run themselves here")
                lines += more
            }
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
            let parts = try await known(text("a"), "a").split(separator: " ")
            XCTAssertGreaterThanOrEqual(try known(Int(parts[0]), "number"), numbers()[puts - 1])
            XCTAssertEqual(parts[1], endlessText[...])
        }
    }
    #endif
}

#if os(Linux)
/// The process that is killed.
final class EndlessWriterTests: XCTestCase {
    func testWritesUntilItIsKilled() async throws {
        guard let folder = ProcessInfo.processInfo.environment[writerFolder] else { return }
        let storage = FileAppStorage(folder: URL(fileURLWithPath: folder))
        for number in 1...100_000 {
            try await storage.put("a", "\(number) \(endlessText)")
            try FileHandle.standardOutput.write(contentsOf: Data("\(number)\n".utf8))
        }
    }
}

private let writerFolder = "CALLSIGN_WRITES_INTO"
private let endlessText = String(repeating: "x", count: 200_000)
#endif
