import CallsignCrypto
import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// The vectors of RFC 9605 and of `callsign-media-1`, and the same rules as `test/app/media/frames.test.ts`.
final class FramesTests: XCTestCase {
    private var vectors = JSONValue.null
    private var frames: [JSONValue] = []
    private var callId = ""
    private var callKey: [UInt8] = []
    private let opus = [0x78] + [UInt8](repeating: 0x55, count: 40)

    override func setUpWithError() throws {
        vectors = try readVectors("media-frames")
        frames = vectors.list("frames")
        callId = try vectors.text("call_id")
        callKey = try vectors.hex("call_key_hex")
    }

    private func cryptor(_ epochs: Int...) -> FrameCryptor {
        let cryptor = FrameCryptor(callId: callId)
        for epoch in epochs { cryptor.setKey(epoch: epoch, key(epoch)) }
        if let first = epochs.first { cryptor.useKey(epoch: first) }
        return cryptor
    }

    private func key(_ epoch: Int) -> [UInt8] { sha256(Array("epoch \(epoch)".utf8)) }

    private func sealed(by cryptor: FrameCryptor, _ format: FrameFormat = .opus, _ frame: [UInt8]? = nil) throws -> [UInt8] {
        try known(cryptor.seal(format, frame ?? opus), "frame")
    }

    /// The frame in hexadecimal digits, or why there is none.
    private func opened(_ octets: [UInt8], by cryptor: FrameCryptor, _ format: FrameFormat = .opus) -> String {
        switch cryptor.open(format, octets) {
        case .opened(let opened): hex(opened.frame)
        case .unopened(let reason): reason.rawValue
        }
    }

    private func isOpened(_ octets: [UInt8], by cryptor: FrameCryptor, _ format: FrameFormat) -> Bool {
        if case .opened = cryptor.open(format, octets) { true } else { false }
    }

    private func header(of frame: [UInt8]) throws -> SFrameHeader { try known(parseSFrameHeader(frame), "header") }

    private func format(of frame: JSONValue) throws -> FrameFormat {
        try known(FrameFormat(rawValue: frame.text("format")), "format")
    }

    private func id(_ vector: JSONValue, _ name: String) throws -> UInt64 { try known(uint64(vector.text(name)), name) }

    func testHeadersAreThoseOfRFC9605C1() throws {
        for vector in vectors.list("headers") {
            let header = formatSFrameHeader(kid: try id(vector, "kid"), counter: try id(vector, "counter"))
            XCTAssertEqual(hex(header), try vector.text("header_hex"))
        }
        for _ in 0..<1_000 {
            let kid = UInt64.random(in: 0 ... .max) >> UInt64.random(in: 0..<64)
            let counter = UInt64.random(in: 0 ... .max) >> UInt64.random(in: 0..<64)
            let header = formatSFrameHeader(kid: kid, counter: counter)
            XCTAssertEqual(parseSFrameHeader(header + [7]), SFrameHeader(kid: kid, counter: counter, size: header.count))
            XCTAssertNil(parseSFrameHeader(header.dropLast()))
        }
    }

    func testSuite5GivesTheValuesOfRFC9605C3() throws {
        let vector = try vectors.get("suite_5")
        let (kid, counter) = (try id(vector, "kid"), try id(vector, "counter"))
        let key = SFrameKey(baseKey: try vector.hex("base_key_hex"), kid: kid)
        XCTAssertEqual(hex(key.salt), try vector.text("sframe_salt_hex"))
        let (metadata, plain) = (try vector.hex("metadata_hex"), try vector.hex("plain_hex"))
        let sealed = try key.seal(kid: kid, counter: counter, metadata: metadata, plain)
        XCTAssertEqual(hex(sealed), try vector.text("sealed_hex"))
        let size = try header(of: sealed).size
        let (header, behind) = (Array(sealed[..<size]), Array(sealed[size...]))
        XCTAssertEqual(try key.open(counter: counter, header: header, metadata: metadata, behind), plain)
        XCTAssertThrowsError(try key.open(counter: counter + 1, header: header, metadata: metadata, behind))
        XCTAssertThrowsError(try key.open(counter: counter, header: header, metadata: metadata + [0], behind))
    }

    func testFramesOfEachCodecAreSealedAndOpenedAsTheirVectorsSay() throws {
        XCTAssertEqual(Set(try frames.map(format)), Set(FrameFormat.allCases))
        for vector in frames {
            let epoch = try vector.number("epoch")
            let kid = try known(UInt64(vector.text("kid_hex"), radix: 16), "kid")
            let counter = try id(vector, "counter")
            let base = deriveMediaBase(callKey, callId: callId, epoch: epoch)
            XCTAssertEqual(hex(base), try vector.text("base_hex"))
            let key = SFrameKey(baseKey: base, kid: kid)
            XCTAssertEqual(hex(key.salt), try vector.text("sframe_salt_hex"))
            let format = try format(of: vector)
            let sealed = try known(sealFrame(format, key, kid: kid, counter: counter, vector.hex("frame_hex")), "frame")
            XCTAssertEqual(hex(sealed), try vector.text("sealed_hex"))
            let parsed = try known(parseFrame(format, sealed), "parsed")
            XCTAssertEqual([parsed.kid, parsed.counter], [kid, counter])
            XCTAssertEqual(parsed.clear.count, try vector.number("clear_bytes"))
            let cryptor = FrameCryptor(callId: callId)
            cryptor.setKey(epoch: epoch, callKey)
            XCTAssertEqual(opened(sealed, by: cryptor, format), try vector.text("frame_hex"))
        }
    }

    func testAChangeOfAnyOctetIsNoticedButForTheParameterSetsBeforeASlice() throws {
        for vector in frames {
            let format = try format(of: vector)
            let sealed = try vector.hex("sealed_hex")
            let cryptor = FrameCryptor(callId: callId)
            cryptor.setKey(epoch: try vector.number("epoch"), callKey)
            let from = format == .h264 ? try vector.number("clear_bytes") - 3 : 0
            for at in from..<min(sealed.count, 150) {
                XCTAssertFalse(isOpened(sealed.changed(at: at, bit: at % 8), by: cryptor, format), "octet \(at)")
                XCTAssertFalse(isOpened(Array(sealed[..<at]), by: cryptor, format), "cut at \(at)")
            }
            let frame = try vector.text("frame_hex")
            XCTAssertEqual(opened(sealed, by: cryptor, format), frame, "the forged ones have left no trace")
        }
        let slice = try known(
            frames.first { try format(of: $0) == .h264 && $0.number("clear_bytes") > 20 }, "parameter sets")
        let cryptor = FrameCryptor(callId: callId)
        cryptor.setKey(epoch: try slice.number("epoch"), callKey)
        let digits = try slice.text("sealed_hex")
        let start = try known(digits.range(of: "0000000168"), "start code")
        let shorter = try fromHex(digits.replacingCharacters(in: start, with: "00000168"))
        XCTAssertTrue(isOpened(shorter, by: cryptor, .h264), "a start code of three octets")
    }

    func testAFrameThatItsCodecDoesNotMakeIsNotSentForItWouldBeAllClear() throws {
        let cryptor = cryptor(1)
        XCTAssertNil(cryptor.seal(.vp8, try fromHex("100200")), "a key frame of VP8 without its size")
        XCTAssertNil(cryptor.seal(.vp8, try fromHex("3102")))
        XCTAssertNil(cryptor.seal(.h264, try fromHex("000000016742001f8c8d40501e90")), "no slice")
        XCTAssertNil(cryptor.seal(.h264, try fromHex("00000001419a")))
        for format in FrameFormat.allCases {
            for frame in ["", "80", "31", "e1000000000000000000"] {
                XCTAssertEqual(opened(try fromHex(frame), by: cryptor, format), "malformed")
            }
        }
    }

    func testASliceStaysOneNALUnitAndRandomOnesComeBackAsTheyWere() throws {
        let starts = try ["419a24", "410100", "410000"].map(fromHex)
        for number in 0..<20_000 {
            let start = starts[number % 3]
            let nal = (0..<Int.random(in: 0..<60)).map { _ in UInt8.random(in: Bool.random() ? 0...3 : 0...255) }
            let escaped = escapeNal(nal, behind: start)
            XCTAssertEqual(unescapeNal(escaped, behind: start), nal)
            XCTAssertFalse(hasStartCode(start.dropFirst() + escaped), hex(nal))
        }
        let (ann, bob) = (cryptor(1), cryptor(1))
        for size in 0..<300 {
            let frame = try fromHex("00000001410000") + [UInt8](repeating: 0, count: size)
            let sealed = try sealed(by: ann, .h264, frame)
            XCTAssertFalse(hasStartCode(sealed.dropFirst(5)))
            XCTAssertEqual(opened(sealed, by: bob, .h264), hex(frame))
        }
    }

    private func hasStartCode(_ octets: ArraySlice<UInt8>) -> Bool {
        octets.indices.dropLast(2).contains { octets[$0] == 0 && octets[$0 + 1] == 0 && octets[$0 + 2] < 3 }
    }
}
