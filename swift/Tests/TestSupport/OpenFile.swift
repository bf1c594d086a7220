import CallsignVerify
import Foundation

#if canImport(Glibc)
    import Glibc
    private let streamSocket = Int32(SOCK_STREAM.rawValue)
    private let withoutSignal = Int32(MSG_NOSIGNAL)
#else
    import Darwin
    private let streamSocket = SOCK_STREAM
    private let withoutSignal: Int32 = 0
#endif

/// A socket of the system, closed once and named by nobody after that.
final class OpenFile: Sendable {
    struct NoConnection: Error {}

    private let file: Locked<Int32?>

    init(_ file: Int32) {
        self.file = Locked(file)
        #if canImport(Darwin)
            // A server that is gone must not end the tests.
            var isOn: Int32 = 1
            setsockopt(file, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<Int32>.size))
        #endif
    }

    /// Reads and writes take no longer, each.
    func limit(ms: Int) {
        guard let file = file.with({ $0 }) else { return }
        var time = timeval(tv_sec: ms / 1_000, tv_usec: .init(ms % 1_000 * 1_000))
        setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Returns nothing where the other side has ended, or this one.
    func read() -> [UInt8] {
        guard let file = file.with({ $0 }) else { return [] }
        var octets = [UInt8](repeating: 0, count: 64 * 1024)
        let count = recv(file, &octets, octets.count, 0)
        return count > 0 ? Array(octets[..<count]) : []
    }

    /// False where the connection has ended.
    func write(_ octets: [UInt8]) -> Bool {
        var at = 0
        while at < octets.count {
            guard let file = file.with({ $0 }) else { return false }
            let count = octets[at...].withUnsafeBytes { send(file, $0.baseAddress, $0.count, withoutSignal) }
            if count <= 0 { return false }
            at += count
        }
        return true
    }

    /// Ends both directions; who reads is told.
    func end() {
        file.with { if let file = $0 { _ = shutdown(file, Int32(SHUT_RDWR)) } }
    }

    func close() {
        file.with { file in
            if let open = file { _ = closeFile(open) }
            file = nil
        }
    }
}

private func closeFile(_ file: Int32) -> Int32 { close(file) }

private func addressOf(_ host: String, _ port: UInt16) -> sockaddr_in? {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    return inet_pton(AF_INET, host, &address.sin_addr) == 1 ? address : nil
}

/// A connection to this port. Throws `NoConnection`.
func connectedTCP(_ host: String, _ port: UInt16) throws -> Int32 {
    guard var address = addressOf(host, port) else { throw OpenFile.NoConnection() }
    let file = socket(AF_INET, streamSocket, 0)
    var isOn: Int32 = 1
    setsockopt(file, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
    let isConnected = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
    }
    if isConnected { return file }
    _ = closeFile(file)
    throw OpenFile.NoConnection()
}
