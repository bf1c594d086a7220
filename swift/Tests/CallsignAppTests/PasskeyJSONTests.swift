import CallsignVerify
import XCTest

@testable import CallsignApp

final class PasskeyJSONTests: XCTestCase {
    private let creation = """
        {"rp":{"id":"example.org","name":"Calls"},"user":{"id":"-_8","name":"kim@example.org","displayName":"Kim"},\
        "challenge":"AAEC","timeout":300000,"pubKeyCredParams":[{"type":"public-key","alg":-7}],\
        "excludeCredentials":[{"id":"BA","type":"public-key"}],"attestation":"none"}
        """

    func testReadsWhatTheServerAsksFor() throws {
        let options = try PasskeyCreation(creation)
        XCTAssertEqual(options.domain, "example.org")
        XCTAssertEqual(options.challenge, [0, 1, 2])
        XCTAssertEqual(options.userHandle, [0xfb, 0xff])
        XCTAssertEqual(options.userName, "kim@example.org")
        XCTAssertEqual(options.excluded, [[4]])
        let request = try PasskeyRequest(#"{"rpId":"example.org","challenge":"AAEC","allowCredentials":[]}"#)
        XCTAssertEqual(request.challenge, [0, 1, 2])
        XCTAssertEqual(request.allowed, [])
        XCTAssertEqual(try PasskeyRequest(#"{"rpId":"example.org","challenge":""}"#).allowed, [])
    }

    func testRefusesWhatIsNone() {
        let strange = [
            "", "[]", #"{"rpId":"example.org"}"#, #"{"rpId":"example.org","challenge":"AA=="}"#,
            #"{"rpId":"example.org","challenge":"+/"}"#, #"{"rpId":"example.org","challenge":"A"}"#,
            #"{"rpId":"example.org","challenge":"AAEC","allowCredentials":{}}"#,
        ]
        for options in strange {
            XCTAssertThrowsError(try PasskeyRequest(options), options) { XCTAssertTrue($0.hasCode("ANSWER_INVALID"), "\($0)") }
        }
    }

    func testWritesWhatTheServerReads() throws {
        let assertion = JSONValue(
            passkeyAssertion(
                id: [0xfb, 0xff], clientData: Array("{}".utf8), authenticatorData: [1], signature: [2, 3], userHandle: []))
        XCTAssertEqual(
            assertion,
            [
                "id": "-_8", "rawId": "-_8", "type": "public-key", "clientExtensionResults": [:],
                "response": ["clientDataJSON": "e30", "authenticatorData": "AQ", "signature": "AgM", "userHandle": ""],
            ])
        let registration = JSONValue(passkeyRegistration(id: [4], clientData: [], attestation: [0xa0]))
        XCTAssertEqual(registration?["response"], ["clientDataJSON": "", "attestationObject": "oA"])
    }
}
