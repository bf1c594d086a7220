import Foundation
import TestSupport
import XCTest

@testable import CallsignVerify

/// Stores of files: what outlasts a program, and what a crash or a damaged disk leaves.
final class FileStoresTests: XCTestCase {
    private let checkpoint = SignedCheckpoint(
        origin: "log.example/kt ../..", treeSize: 7, rootHash: "AAAA", note: "note\n\n\u{2014} x\n")

    private func checkpoint(_ treeSize: Int, origin: String? = nil) -> SignedCheckpoint {
        SignedCheckpoint(
            origin: origin ?? checkpoint.origin, treeSize: treeSize, rootHash: checkpoint.rootHash, note: checkpoint.note)
    }

    func testCheckpointsOutlastTheStoreEachLogApart() async throws {
        let folder = try TemporaryFolder()
        let log = folder.url.appendingPathComponent("app/log")
        let kept = KeptCheckpoint(checkpoint: checkpoint, pending: ["one\n", "two\n"], openSinceMs: 1_790_000_000_000)
        let other = KeptCheckpoint(checkpoint: checkpoint(safeMax, origin: "other.example"))
        let store = FileCheckpointStore(folder: log)
        let before = try await store.get(checkpoint.origin)
        XCTAssertNil(before)
        try await store.put(KeptCheckpoint(checkpoint: checkpoint(3)))
        try await store.put(kept)
        try await store.put(other)
        let reopened = FileCheckpointStore(folder: log)
        let (one, two) = (try await reopened.get(checkpoint.origin), try await reopened.get("other.example"))
        XCTAssertEqual(kept, one)
        XCTAssertEqual(other, two)
    }

    func testAWriteThatWasCutShortLeavesTheStateBeforeIt() async throws {
        let folder = try TemporaryFolder()
        let store = FileCheckpointStore(folder: folder.url)
        try await store.put(KeptCheckpoint(checkpoint: checkpoint))
        let name = try XCTUnwrap(try folder.files.first)
        try Data(#"{"origin":"log.exa"#.utf8).write(to: folder.url.appendingPathComponent("\(name).new"))
        let found = try await FileCheckpointStore(folder: folder.url).get(checkpoint.origin)
        XCTAssertEqual(checkpoint, found?.checkpoint)
        try await store.put(KeptCheckpoint(checkpoint: checkpoint(8)))
        let next = try await store.get(checkpoint.origin)
        XCTAssertEqual(8, next?.checkpoint.treeSize)
        XCTAssertEqual([name], try folder.files)
    }

    func testADamagedFileIsAnErrorAndNoEmptyMemory() async throws {
        let folder = try TemporaryFolder()
        let store = FileCheckpointStore(folder: folder.url)
        try await store.put(KeptCheckpoint(checkpoint: checkpoint))
        let file = folder.url.appendingPathComponent(try XCTUnwrap(try folder.files.first))
        let good = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        let seven = good.replacingOccurrences(of: "7", with: #""seven""#)
        for damaged in ["", "{", String(good.dropLast()), "[]", "{}", seven, "\0" + good] {
            try Data(damaged.utf8).write(to: file)
            do {
                _ = try await store.get(checkpoint.origin)
                XCTFail("\(damaged) was read")
            } catch let error as LogError {
                XCTAssertEqual(.malformed, error.code, damaged)
            }
        }
    }

    func testWhatIsKnownOfAContactOutlastsTheStore() async throws {
        let folder = try TemporaryFolder()
        let events = DeviceEvent.Kind.allCases.map { DeviceEvent($0, deviceId: "5") } + [DeviceEvent(.reset)]
        let known = KnownUser(
            userId: "7",
            devices: [KnownDevice(deviceId: "5", keyHash: "AAAA")],
            list: KnownList(list: "list", vrfHash: "hash", index: 4, sinceIndex: 3, sinceSeq: 2),
            events: events,
            question: KeyQuestion(.firstList, listHash: "BBBB")
        )
        try await FileKnownUserStore(folder: folder.url).put(known)
        let read = try await FileKnownUserStore(folder: folder.url).get("7")
        XCTAssertEqual(known, read)
        let unlisted = KnownUser(userId: "7", devices: known.devices)
        try await FileKnownUserStore(folder: folder.url).put(unlisted)
        let (again, other) = try await (
            FileKnownUserStore(folder: folder.url).get("7"), FileKnownUserStore(folder: folder.url).get("8")
        )
        XCTAssertEqual(unlisted, again)
        XCTAssertNil(other)
    }

    func testTheTextsOfBothStoresAreReadAgain() throws {
        let kept = KeptCheckpoint(checkpoint: checkpoint, pending: ["\u{2014} \"\\\n"], openSinceMs: 5)
        XCTAssertEqual(kept, try parseKeptCheckpoint(formatKeptCheckpoint(kept)))
        let known = KnownUser(userId: "7", devices: [], events: [DeviceEvent(.unlisted, deviceId: "\r\n")])
        XCTAssertEqual(known, try parseKnownUser(formatKnownUser(known)))
        XCTAssertEqual(.malformed, logErrorCode { _ = try parseKnownUser("[]") })
    }

    func testTheOwnerAloneCanReadTheFiles() async throws {
        let folder = try TemporaryFolder()
        let store = folder.url.appendingPathComponent("store")
        try await AtomicFiles(folder: store).write("name", [1, 2, 3])
        for (path, expected) in [(store.path, 0o700), (store.appendingPathComponent("name").path, 0o600)] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            XCTAssertEqual(expected, attributes[.posixPermissions] as? Int, path)
        }
    }

    func testFilesAreReplacedWholeAndDeleted() async throws {
        let folder = try TemporaryFolder()
        let files = AtomicFiles(folder: folder.url)
        let large = (0..<200_000).map { UInt8(truncatingIfNeeded: $0) }
        for octets in [[1, 2, 3], large, []] {
            try await files.write("name", octets)
            let read = try await files.read("name")
            XCTAssertEqual(octets, read)
        }
        try await files.delete("name")
        try await files.delete("name")
        let gone = try await files.read("name")
        XCTAssertNil(gone)
        XCTAssertEqual([], try folder.files)
    }

    func testAFolderThatIsNoneIsAnError() async throws {
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("file")
        try Data([1]).write(to: file)
        let store = FileCheckpointStore(folder: file)
        for act in [{ _ = try await store.get("x") }, { try await store.put(KeptCheckpoint(checkpoint: self.checkpoint)) }] {
            do {
                try await act()
                XCTFail("there is a file in the place of the folder")
            } catch {
                XCTAssertFalse(error is LogError, "\(error)")
            }
        }
    }

    #if os(Linux)
        /// A program that writes without end is killed in the middle of it; what it said it had kept is there.
        func testAKilledProgramLeavesAWholeStateAndTheLastOneThatItKept() async throws {
            for _ in 0..<5 {
                let folder = try TemporaryFolder()
                let writer = Process()
                writer.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
                writer.arguments = ["CallsignVerifyTests.FileStoresTests/testWritesWithoutEndForTheTestThatKillsIt"]
                writer.environment = ["CALLSIGN_WRITE_TO": folder.url.path]
                let said = Pipe()
                writer.standardOutput = said
                try writer.run()
                let kept = try known(lastNumber(said.fileHandleForReading), "a number")
                kill(writer.processIdentifier, SIGKILL)
                writer.waitUntilExit()
                let found = try await FileCheckpointStore(folder: folder.url).get(checkpoint.origin)
                XCTAssertGreaterThanOrEqual(try known(found, "a checkpoint").checkpoint.treeSize, kept)
            }
        }

        func testWritesWithoutEndForTheTestThatKillsIt() async throws {
            guard let path = ProcessInfo.processInfo.environment["CALLSIGN_WRITE_TO"] else {
                throw XCTSkip("CALLSIGN_WRITE_TO names no folder")
            }
            let store = FileCheckpointStore(folder: URL(fileURLWithPath: path))
            let pending = Array(repeating: String(repeating: "x", count: 10_000), count: 16)
            for treeSize in 1... {
                try await store.put(KeptCheckpoint(checkpoint: checkpoint(treeSize), pending: pending))
                try FileHandle.standardOutput.write(contentsOf: Data("kept \(treeSize)\n".utf8))
            }
        }

        /// The number of the last whole line, once there are twenty.
        private func lastNumber(_ said: FileHandle) throws -> Int? {
            var text = Data()
            while case let piece = said.availableData, !piece.isEmpty {
                text += piece
                let numbers = String(decoding: text, as: UTF8.self).components(separatedBy: "\n").dropLast()
                    .compactMap { $0.hasPrefix("kept ") ? Int($0.dropFirst(5)) : nil }
                if numbers.count >= 20 { return numbers.last }
            }
            return nil
        }
    #endif
}
