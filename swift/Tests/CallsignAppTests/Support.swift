import CallsignCrypto
import CallsignVerify
import Foundation
import TestSupport

@testable import CallsignApp

/// The use of the sealed keys in docs/check/crypto.md.
let binding = KeyBinding(callId: "6117204471893025", epoch: 1)

/// The code that the act fails with; nil where it does not fail.
func codeOf(_ act: () async throws -> Void) async -> String? {
    do {
        try await act()
        return nil
    } catch {
        return (error as? CallsignError)?.code ?? "\(error)"
    }
}

/// Whether the act throws a `CryptoError`.
func isRefused(_ act: () async throws -> Void) async -> Bool {
    do {
        try await act()
        return false
    } catch {
        return error is CryptoError
    }
}

extension [UInt8] {
    func changed(at: Int, bit: Int = 0) -> [UInt8] {
        var octets = self
        octets[at] ^= 1 << bit
        return octets
    }

    /// With each bit changed on its own.
    var oneBitChanged: [[UInt8]] { indices.flatMap { at in (0..<8).map { changed(at: at, bit: $0) } } }

    /// The beginnings that are shorter.
    var cut: [[UInt8]] { indices.map { [UInt8](self[..<$0]) } }
}

extension KeyPair {
    /// The key of a private scalar in hexadecimal digits.
    init(scalar: String) throws {
        let secret = try fromHex(scalar)
        try self.init(secret: secret, point: platform.p256Point(ofKey: secret))
    }
}

/// The last value in a row of docs/check/crypto.md that begins so.
func documented(_ row: String) throws -> String {
    let page = try String(contentsOf: projectRoot.appendingPathComponent("docs/check/crypto.md"), encoding: .utf8)
    let line = page.split(separator: "\n").first { $0.hasPrefix("| \(row)") && $0.hasSuffix("` |") }
    return try known(line?.dropLast(3).split(separator: "`").last.map(String.init), row)
}
