import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

final class WebAuthnTests: XCTestCase {
    func testOptionsAreRead() throws {
        let creation = try PasskeyCreation(
            #"{"rp":{"id":"example.org","name":"x"},"user":{"id":"AQI","name":"Ann","displayName":"A"},"challenge":"_-8"}"#)
        XCTAssertEqual(creation.rpId, "example.org")
        XCTAssertEqual(creation.challenge, [0xff, 0xef])
        XCTAssertEqual(creation.userName, "Ann")
        XCTAssertEqual(creation.userId, [1, 2])
        let any = try PasskeyRequest(#"{"rpId":"example.org","challenge":"AQ"}"#)
        XCTAssertEqual(any.allowed, [])
        let one = try PasskeyRequest(#"{"rpId":"example.org","challenge":"AQ","allowCredentials":[{"type":"public-key","id":"AQI"}]}"#)
        XCTAssertEqual(one.allowed, [[1, 2]])
    }

    func testOptionsOfAnotherFormAreRefused() {
        for options in ["", "[]", "{}", #"{"rpId":"x","challenge":"+"}"#, #"{"rpId":"x","challenge":"AR"}"#, #"{"rpId":1,"challenge":[]}"#] {
            XCTAssertThrowsError(try PasskeyRequest(options), options) { XCTAssertTrue($0.hasCode("ANSWER_INVALID")) }
            XCTAssertThrowsError(try PasskeyCreation(options), options) { XCTAssertTrue($0.hasCode("ANSWER_INVALID")) }
        }
    }

    func testResponsesHaveTheirPartsInBase64url() throws {
        let said = try known(
            JSONValue(
                authenticationResponse(id: [0xff, 0xef], clientData: [1], authenticatorData: [2], signature: [3], userHandle: [4])
            ),
            "response"
        )
        XCTAssertEqual([try said.text("id"), try said.text("rawId"), try said.text("type")], ["_-8", "_-8", "public-key"])
        let parts = try said.get("response")
        XCTAssertEqual(
            try ["clientDataJSON", "authenticatorData", "signature", "userHandle"].map { try parts.text($0) },
            ["AQ", "Ag", "Aw", "BA"]
        )
        let made = try known(JSONValue(registrationResponse(id: [1], clientData: [2], attestation: [3])), "response").get("response")
        XCTAssertEqual(try ["clientDataJSON", "attestationObject"].map { try made.text($0) }, ["Ag", "Aw"])
    }
}
