/// One step of a connection: an input comes in, and with the connection as it is then go the acts. `random` is from 0 up to 1,
/// which is not reached.
struct ConnectionStep {
    var connection: DeviceConnection
    let nowMs: Int
    let random: Double
    private(set) var acts: [ConnectionAct] = []

    init(_ connection: DeviceConnection, nowMs: Int, random: Double) {
        self.connection = connection
        self.nowMs = nowMs
        self.random = random
    }

    var phase: ConnectionPhase { connection.phase }

    /// The app hears of another state, and of each attempt that failed.
    mutating func enter(_ phase: ConnectionPhase, failures: Int? = nil) {
        let before = connection
        connection.phase = phase
        connection.failures = failures ?? before.failures
        if phase.state != before.phase.state || connection.failures != before.failures {
            act(.state(phase.state, failures: connection.failures))
        }
    }

    mutating func act(_ act: ConnectionAct) { acts.append(act) }

    /// Sends a frame, whose outcome has the number that this returns.
    @discardableResult
    mutating func request(
        _ socket: Int,
        _ command: String,
        _ headers: [StompHeader],
        _ purpose: ConnectionPurpose,
        body: String = ""
    ) -> Int {
        let number = wait(purpose)
        act(.asking(act: number, .request(socket: socket, command: command, headers: headers, body: body)))
        return number
    }

    mutating func settle(_ command: Int?, error: ConnectionFailure? = nil) {
        if let command { act(.settle(command: command, error: error)) }
    }

    mutating func wait(_ purpose: ConnectionPurpose) -> Int {
        let number = number()
        connection.waiting.append(ConnectionWaiting(act: number, purpose: purpose))
        return number
    }

    mutating func number() -> Int {
        connection.count += 1
        return connection.count
    }
}
