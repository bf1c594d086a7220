// swift-tools-version: 6.0
import PackageDescription

// Xcode builds the app, from the folder Calls (docs/build/ios.md). This builds its Model alone, on Linux too.
let package = Package(
    name: "calls",
    platforms: [.iOS(.v16), .macOS(.v13)],
    dependencies: [.package(name: "callsign", path: "../../swift")],
    targets: [
        .target(
            name: "Model",
            dependencies: [
                .product(name: "CallsignApp", package: "callsign"), .product(name: "CallsignVerify", package: "callsign"),
            ],
            path: "Calls/Model"
        ),
        .testTarget(name: "ModelTests", dependencies: ["Model"], path: "Tests"),
    ],
    swiftLanguageModes: [.v6]
)
