import CallsignVerify

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
