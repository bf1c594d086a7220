import CallsignVerify

/// Octets that can be taken back: all who hold them have the same ones. What was read out of it are copies, which stay.
final class Secret: Sendable, Equatable {
    private let held: Locked<(octets: [UInt8], isWiped: Bool)>

    init(_ octets: [UInt8]) { held = Locked((copyOf(octets), false)) }

    /// Nil once it was wiped.
    var octets: [UInt8]? { held.with { $0.isWiped ? nil : copyOf($0.octets) } }

    /// Zeros once it was wiped.
    var copy: [UInt8] { held.with { copyOf($0.octets) } }

    func wipe() {
        held.with { held in
            CallsignApp.wipe(&held.octets)
            held.isWiped = true
        }
    }

    /// By what they are, not by what they hold.
    static func == (one: Secret, other: Secret) -> Bool { one === other }
}

/// Overwrites a secret where it is. Copies that were made of it stay.
func wipe(_ octets: inout [UInt8]) {
    octets.withUnsafeMutableBytes { _ = $0.initializeMemory(as: UInt8.self, repeating: 0) }
}

/// In memory of its own: Swift copies an array when one of its holders writes, so overwriting a shared one would overwrite
/// nothing.
private func copyOf(_ octets: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: octets.count) { buffer, count in
        count = buffer.initialize(fromContentsOf: octets)
    }
}
