import Foundation

/// A folder of one test, gone with it.
public final class TemporaryFolder: Sendable {
    public let url: URL

    public init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// The files in it, by their names.
    public var files: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: url.path).sorted() } }
}
