import CallsignVerify

func sentenceFor(_ code: String, title: String?, language: String) -> String { title ?? code }

enum Spoken {
    private static let spoken = Locked("en")

    static var language: String {
        get { spoken.with { $0 } }
        set { spoken.with { $0 = newValue } }
    }
}

public typealias DeviceKeysOf = @Sendable (_ userId: UInt64) async throws -> any DeviceKeys

func deviceProof(
    _ storage: any AppStorage, _ keysOf: DeviceKeysOf, _ userId: UInt64, challenge: [UInt8]
) async -> [String: JSONValue]? { nil }

func stepUpMessage(userId: UInt64, proof: [UInt8]) throws -> [UInt8] { [] }
