import CallsignVerify
import Foundation

/// Where an app keeps what has to outlive it: its session and its device's keys. A text survives a crash once `put` has returned.
/// The texts are secrets: keep them encrypted, and out of backups.
public protocol AppStorage: Sendable {
    /// The text that was put last; nil where there is none.
    func get(_ key: String) async throws -> String?

    /// Nil takes a text away.
    func put(_ key: String, _ text: String?) async throws
}

/// Forgets everything when the program ends.
public final class MemoryAppStorage: AppStorage {
    private let texts = Locked<[String: String]>([:])

    public init() {}

    public func get(_ key: String) async throws -> String? { texts.with { $0[key] } }

    public func put(_ key: String, _ text: String?) async throws { texts.with { $0[key] = text } }
}

/// One file in a folder for each text, for its owner alone: after a crash it has the old text or the new one. `get` throws
/// `STORAGE_CORRUPT` for a damaged file, and leaves it as it is. Texts are not encrypted here: on a phone or a Mac take
/// `KeychainAppStorage`. Use a folder in one program at a time.
public final class FileAppStorage: AppStorage {
    private let files: AtomicFiles

    public init(folder: URL) { files = AtomicFiles(folder: folder) }

    public func get(_ key: String) async throws -> String? {
        guard let content = try await files.read(fileOf(key)) else { return nil }
        let octets = content.drop { $0 != lineEnd }.dropFirst()
        guard let text = try? decodeUTF8(Array(octets)), content == contentOf(text) else { throw storageCorrupt(key) }
        return text
    }

    public func put(_ key: String, _ text: String?) async throws {
        if let text { try await files.write(fileOf(key), contentOf(text)) } else { try await files.delete(fileOf(key)) }
    }

    /// No letter is spelled in capitals: a Mac's disk takes `A` for `a`.
    private func fileOf(_ key: String) -> String {
        let letters = key.utf8.map { octet in
            switch octet {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
                UInt8(ascii: "."):
                String(UnicodeScalar(octet))
            default: "%\(hex([octet]))"
            }
        }
        return "\(letters.joined()).txt"
    }

    /// A line with SHA-256 of the text, then the text: a disk that forgets or changes octets shows.
    private func contentOf(_ text: String) -> [UInt8] {
        let octets = Array(text.utf8)
        return Array("sha256 \(hex(sha256(octets)))".utf8) + [lineEnd] + octets
    }
}

private let lineEnd: UInt8 = 0x0a
