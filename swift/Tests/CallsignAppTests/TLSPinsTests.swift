import CallsignVerify
import Foundation
import TestSupport
import XCTest

@testable import CallsignApp

/// With the project's test certificates. What the system does with them runs on Apple's systems only.
final class TLSPinsTests: XCTestCase {
    private func certificate(_ name: String) throws -> [UInt8] {
        let pem = try String(contentsOf: projectRoot.appendingPathComponent("test/support/tls/\(name).crt"), encoding: .utf8)
        let lines = pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }
        return try decodeBase64(lines.joined())
    }

    private func pin(_ name: String) throws -> String {
        let key = try known(publicKeyInfo(inCertificate: certificate(name)), name)
        return "sha256/\(encodeBase64(sha256(key)))"
    }

    func testThePublicKeyOfACertificateIsFoundInIt() throws {
        // By `openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64`.
        XCTAssertEqual(try pin("server"), "sha256/uMmLlWadUuJa5XOrxrdxxEMxMvr3pQXA/HNBHUjXPfc=")
        XCTAssertEqual(try pin("ca"), "sha256/4BVHGssS9gPy22uHUDg94x6lPHxeI4TUdOFNqGWA8N4=")
    }

    func testTheServersKeyASpareBesideItAndItsAuthoritysKeyAreGood() throws {
        let chain = [try certificate("server"), try certificate("ca")]
        let (server, authority, stranger) = (try pin("server"), try pin("ca"), try pin("stranger"))
        for pins in [[server], [stranger, server], [server, stranger], [authority], []] {
            XCTAssertTrue(try TLSPins(pins).hold(certificates: chain), "\(pins)")
        }
    }

    func testAnotherKeyIsRefused() throws {
        let chain = [try certificate("server"), try certificate("ca")]
        for pins in [[try pin("stranger")], [try pin("stranger"), try pin("other")]] {
            XCTAssertFalse(try TLSPins(pins).hold(certificates: chain), "\(pins)")
        }
        XCTAssertFalse(try TLSPins([try pin("server")]).hold(certificates: []))
    }

    func testAPinOfAnotherFormIsRefusedAndPinsForAServerWithoutTLS() throws {
        let server = try pin("server")
        let sha1 = "sha1/\(String(repeating: "A", count: 27))="
        let odd = ["", String(server.dropFirst(7)), String(server.dropLast()), sha1, "sha256/AAAA", "\(server)\n"]
        for pin in odd {
            XCTAssertThrowsError(try Server("https://localhost", tlsPins: [server, pin]), pin) {
                XCTAssertTrue($0.hasCode("MALFORMED"))
            }
        }
        XCTAssertThrowsError(try Server("http://localhost", tlsPins: [server])) { XCTAssertTrue($0.hasCode("MALFORMED")) }
    }

    func testOctetsThatAreNoCertificateHaveNoKey() throws {
        let whole = try certificate("server")
        for count in 0..<whole.count {
            XCTAssertNil(publicKeyInfo(inCertificate: Array(whole[..<count])), "\(count)")
        }
        var changed = whole
        for at in whole.indices {
            for octet: UInt8 in [0, 0x30, 0x7f, 0x80, 0x83, 0x84, 0xff] {
                changed[at] = octet
                _ = publicKeyInfo(inCertificate: changed)
            }
            changed[at] = whole[at]
        }
    }

    func testAMismatchIsToldAndNotTriedAgain() async throws {
        let sent = Locked(0)
        let http = Answering { _ in
            sent.with { $0 += 1 }
            throw TLSPinMismatch()
        }
        do {
            _ = try await Server("https://localhost", http: http, tlsPins: [pin("server")]).request("GET", "user")
            XCTFail("it was answered")
        } catch let error as CallsignError {
            XCTAssertEqual(error.code, "NO_ANSWER")
            XCTAssertTrue(error.cause is TLSPinMismatch)
        }
        XCTAssertEqual(sent.with { $0 }, 1)
    }

    #if !canImport(Security)
        func testWhereTheSystemChecksNoPinsNothingIsSent() async throws {
            do {
                _ = try await Server("https://localhost:1", tlsPins: [pin("server")]).request("GET", "user")
                XCTFail("it was answered")
            } catch let error as CallsignError {
                XCTAssertEqual(error.code, "TLS_PINS_UNAVAILABLE")
            }
        }
    #endif
}

/// Answers as a test says.
struct Answering: HTTPTransport {
    let answer: @Sendable (HTTPRequest) async throws -> HTTPAnswer

    init(_ answer: @escaping @Sendable (HTTPRequest) async throws -> HTTPAnswer) { self.answer = answer }

    func send(_ request: HTTPRequest) async throws -> HTTPAnswer { try await answer(request) }
}
