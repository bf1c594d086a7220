import CallsignVerify
import Foundation

/// The folder that holds `package.json`.
public let projectRoot: URL = {
    var folder = URL(fileURLWithPath: #filePath)
    repeat { folder.deleteLastPathComponent() } while !FileManager.default.fileExists(
        atPath: folder.appendingPathComponent("test/vectors").path)
    return folder
}()

/// One of `test/vectors`, which every implementation of this project is tested by.
public func readVectors(_ name: String) throws -> JSONValue {
    let data = try Data(contentsOf: projectRoot.appendingPathComponent("test/vectors/\(name).json"))
    return try known(JSONValue(octets: [UInt8](data)), name)
}

/// The lines of a file of JSON lines.
public func readLines(_ url: URL) throws -> [JSONValue] {
    try Data(contentsOf: url).split(separator: 0x0a).map { try known(JSONValue(octets: [UInt8]($0)), url.path) }
}

public func readLines(_ name: String) throws -> [JSONValue] {
    try readLines(projectRoot.appendingPathComponent("test/vectors/\(name).jsonl"))
}

/// A member of a test vector is not there, or of another kind.
public struct VectorError: Error {
    let name: String

    public init(name: String) { self.name = name }
}

public func known<Value>(_ value: Value?, _ name: String) throws -> Value {
    guard let value else { throw VectorError(name: name) }
    return value
}

extension JSONValue {
    /// The member, unless it is null.
    public func find(_ name: String) -> JSONValue? { self[name].flatMap { $0.isNull ? nil : $0 } }
    public func get(_ name: String) throws -> JSONValue { try known(self[name], name) }
    public func list(_ name: String) -> [JSONValue] { self[name]?.array ?? [] }
    public func text(_ name: String) throws -> String { try known(self[name]?.string, name) }
    public func textOrNil(_ name: String) -> String? { self[name]?.string }
    public func number(_ name: String) throws -> Int { try known(self[name]?.int, name) }
    public func flag(_ name: String) throws -> Bool { try known(self[name]?.bool, name) }
    public func texts(_ name: String) throws -> [String] { try list(name).map { try known($0.string, name) } }
    public func hex(_ name: String) throws -> [UInt8] { try fromHex(text(name)) }

    /// By the platform's decoder, not the one under test.
    public func base64(_ name: String) throws -> [UInt8] { try fromBase64(text(name)) }
}

/// By the platform's decoder, not the one under test.
public func fromBase64(_ text: String) throws -> [UInt8] { [UInt8](try known(Data(base64Encoded: text), text)) }

public func fromHex(_ text: String) throws -> [UInt8] {
    let digits = Array(text)
    return try stride(from: 0, to: digits.count, by: 2).map {
        try known(UInt8(String(digits[$0..<min($0 + 2, digits.count)]), radix: 16), text)
    }
}

/// The code that the act fails with; nil where it does not fail.
public func logErrorCode(_ act: () throws -> Void) -> LogError.Code? {
    do {
        try act()
        return nil
    } catch {
        return (error as? LogError)?.code
    }
}
