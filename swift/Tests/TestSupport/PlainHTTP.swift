import CallsignApp
import CallsignVerify
import Foundation

/// Requests without TLS. Foundation's own on Linux (6.0) crashes at an answer with status 401 and `WWW-Authenticate: Bearer`, as
/// the server gives it.
public final class PlainHTTP: HTTPTransport {
    public enum PlainError: Error {
        case noAddress
        case noConnection
        case noAnswer
    }

    public init() {}

    public func send(_ request: HTTPRequest) async throws -> HTTPAnswer {
        guard let url = URLComponents(string: request.url), let host = url.host, let port = url.port, url.scheme == "http" else {
            throw PlainError.noAddress
        }
        let opened = OpenFile(try connectedTCP(host == "localhost" ? "127.0.0.1" : host, UInt16(port)))
        let head = ["\(request.method) \(url.percentEncodedPath)\(url.percentEncodedQuery.map { "?\($0)" } ?? "") HTTP/1.1"]
            + ["host: \(host):\(port)", "connection: close"]
            + request.headers.map { "\($0.key): \($0.value)" }
            + (request.body.map { ["content-length: \($0.count)"] } ?? [])
        let octets = Array("\(head.joined(separator: "\r\n"))\r\n\r\n".utf8) + (request.body ?? [])
        defer { opened.close() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiting in
                Thread.detachNewThread {
                    waiting.resume(with: Result { try answer(from: opened, to: octets, request) })
                }
            }
        } onCancel: {
            opened.end()
        }
    }
}

/// Where this system's own requests serve the tests, they do.
public func platformHTTP() -> any HTTPTransport {
    #if canImport(Darwin)
        URLSessionHTTP()
    #else
        PlainHTTP()
    #endif
}

private func answer(from opened: OpenFile, to octets: [UInt8], _ request: HTTPRequest) throws -> HTTPAnswer {
    opened.limit(ms: request.timeoutMs)
    guard opened.write(octets) else { throw PlainHTTP.PlainError.noConnection }
    var read: [UInt8] = []
    var head: (answer: HTTPAnswer, bodyStart: Int)?
    while true {
        if head == nil, let end = endOfHead(in: read) { head = (try parsedHead(Array(read[..<end])), end + 4) }
        if let head, let body = try body(in: read[head.bodyStart...], head.answer.headers) {
            var answer = head.answer
            answer.body = body.count > request.octetsMax ? nil : body
            return answer
        }
        let more = opened.read()
        if more.isEmpty { throw PlainHTTP.PlainError.noAnswer }
        read += more
    }
}

/// Nil while there is more to come.
private func body(in octets: ArraySlice<UInt8>, _ headers: [String: String]) throws -> [UInt8]? {
    if headers["transfer-encoding"] != "chunked" {
        let length = headers["content-length"].flatMap { Int($0) } ?? 0
        return octets.count >= length ? Array(octets.prefix(length)) : nil
    }
    var body: [UInt8] = []
    var left = octets
    while let lineEnd = left.firstIndex(of: 0x0a) {
        let digits = String(decoding: left[..<lineEnd].filter { $0 != 0x0d }, as: UTF8.self)
        guard let size = Int(digits, radix: 16) else { throw PlainHTTP.PlainError.noAnswer }
        if size == 0 { return body }
        left = left[(lineEnd + 1)...]
        guard left.count >= size + 2 else { return nil }
        body += left.prefix(size)
        left = left.dropFirst(size + 2)
    }
    return nil
}

private func endOfHead(in octets: [UInt8]) -> Int? {
    let end = Array("\r\n\r\n".utf8)
    return octets.indices.dropLast(3).first { octets[$0..<$0 + 4].elementsEqual(end) }
}

private func parsedHead(_ octets: [UInt8]) throws -> HTTPAnswer {
    let lines = octets.split(separator: 0x0a).map { String(decoding: $0.filter { $0 != 0x0d }, as: UTF8.self) }
    guard let status = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
        throw PlainHTTP.PlainError.noAnswer
    }
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
        guard let colon = line.firstIndex(of: ":") else { continue }
        let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        headers[line[..<colon].lowercased()] = value
    }
    return HTTPAnswer(status: status, headers: headers, body: nil)
}
