import Foundation

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Files in a folder that are replaced whole: written beside, forced to the disk, then renamed. A crash or power cut leaves the
/// old octets or the new ones. The owner alone can read them. Use a folder in one program at a time.
public final class AtomicFiles: Sendable {
    private let folder: String

    /// One step at a time, and never on the threads that tasks share: a disk can take long.
    private let disk = DispatchQueue(label: "callsign.files")

    /// The folder is made with the first file.
    public init(folder: URL) { self.folder = folder.path }

    /// Nil where there is no file.
    public func read(_ name: String) async throws -> [UInt8]? {
        try await onDisk { [self] in
            let file = open(pathOf(name), O_RDONLY | O_CLOEXEC)
            if file < 0 {
                if errno == ENOENT { return nil }
                throw FileError(name)
            }
            defer { close(file) }
            return try readAll(file, name)
        }
    }

    /// The octets survive a crash once it has returned.
    public func write(_ name: String, _ octets: [UInt8]) async throws {
        try await onDisk { [self] in
            let attributes = [FileAttributeKey.posixPermissions: 0o700]
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: attributes)
            let beside = pathOf("\(name).new")
            // One of a crash; its permissions may be of another time.
            if unlink(beside) != 0 && errno != ENOENT { throw FileError(name) }
            try writeDurably(beside, octets, name)
            if rename(beside, pathOf(name)) != 0 { throw FileError(name) }
            syncFolder()
        }
    }

    public func delete(_ name: String) async throws {
        try await onDisk { [self] in
            if unlink(pathOf(name)) == 0 { return syncFolder() }
            if errno != ENOENT { throw FileError(name) }
        }
    }

    private func onDisk<Value: Sendable>(_ act: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { waiting in
            disk.async { waiting.resume(with: Result { try act() }) }
        }
    }

    private func pathOf(_ name: String) -> String { "\(folder)/\(name)" }

    private func readAll(_ file: Int32, _ name: String) throws -> [UInt8] {
        var octets: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Foundation.read(file, &piece, piece.count)
            if count < 0 && errno == EINTR { continue }
            if count < 0 { throw FileError(name) }
            if count == 0 { return octets }
            octets += piece[..<count]
        }
    }

    private func writeDurably(_ path: String, _ octets: [UInt8], _ name: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if file < 0 { throw FileError(name) }
        defer { close(file) }
        var left = octets[...]
        while !left.isEmpty {
            let count = left.withUnsafeBytes { Foundation.write(file, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            if count < 0 { throw FileError(name) }
            left = left.dropFirst(count)
        }
        if forceToDisk(file) != 0 { throw FileError(name) }
    }

    /// The rename itself has to outlast a power cut. Not every system lets a folder be opened.
    private func syncFolder() {
        let opened = open(folder, O_RDONLY | O_CLOEXEC)
        if opened < 0 { return }
        _ = forceToDisk(opened)
        close(opened)
    }
}

/// A file of a store that could not be read or written; `code` is the system's `errno`.
public struct FileError: Error, CustomStringConvertible {
    public let name: String
    public let code: Int32
    public let description: String

    fileprivate init(_ name: String) {
        code = errno
        self.name = name
        description = "\(name): \(String(cString: strerror(code)))"
    }
}

private func forceToDisk(_ file: Int32) -> Int32 {
    #if canImport(Darwin)
        // There, fsync leaves the octets in the disk's own memory. Not every file system knows more.
        if fcntl(file, F_FULLFSYNC) == 0 { return 0 }
    #endif
    return fsync(file)
}
