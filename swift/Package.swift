// swift-tools-version: 6.0
import Foundation
import PackageDescription

// Apple's swift-crypto has CryptoKit's interface. Where its folder is named, both halves of CallsignCrypto are tested on Linux.
let swiftCrypto = ProcessInfo.processInfo.environment["CALLSIGN_SWIFT_CRYPTO"].flatMap { $0.isEmpty ? nil : $0 }

let package = Package(
    name: "callsign",
    defaultLocalization: "en",
    platforms: [.iOS(.v16), .macOS(.v13)],
    products: [
        .library(name: "CallsignVerify", targets: ["CallsignVerify"]),
        .library(name: "CallsignApp", targets: ["CallsignApp"]),
    ],
    dependencies: swiftCrypto.map { [.package(path: $0)] } ?? [],
    targets: [
        .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .target(
            name: "CallsignCrypto",
            dependencies: [.target(name: "COpenSSL", condition: .when(platforms: [.linux]))]
                + (swiftCrypto == nil ? [] : [.product(name: "Crypto", package: "swift-crypto")]),
            swiftSettings: swiftCrypto == nil ? [] : [.define("SWIFT_CRYPTO")]
        ),
        .target(name: "CallsignVerify", dependencies: ["CallsignCrypto"]),
        .target(
            name: "CallsignApp",
            dependencies: ["CallsignVerify", "CallsignCrypto"],
            resources: [.process("Resources")]
        ),
        // Foundation has no WebSockets on Linux: the first program uses what the tests do.
        .executableTarget(
            name: "FirstCall",
            dependencies: ["CallsignApp", .target(name: "TestSupport", condition: .when(platforms: [.linux]))]
        ),
        .target(
            name: "TestSupport",
            dependencies: ["CallsignApp", "CallsignVerify", .target(name: "COpenSSL", condition: .when(platforms: [.linux]))],
            path: "Tests/TestSupport"
        ),
        // For the tests of Kotlin.
        .executableTarget(name: "Participant", dependencies: ["CallsignApp", "TestSupport"], path: "Tests/Participant"),
        .testTarget(
            name: "CallsignCryptoTests",
            dependencies: ["CallsignCrypto", "TestSupport"],
            swiftSettings: swiftCrypto == nil ? [] : [.define("SWIFT_CRYPTO")]
        ),
        .testTarget(name: "CallsignVerifyTests", dependencies: ["CallsignVerify", "TestSupport"]),
        .testTarget(name: "CallsignAppTests", dependencies: ["CallsignApp", "TestSupport"]),
    ],
    swiftLanguageModes: [.v6]
)
