import CallsignVerify

/// Queues of the device: the app handles one message of each at a time, each event once, and it is acknowledged then.
enum ConnectionQueues {
    private static let nonsense = ConnectionFailure(
        code: CallsignError.LocalCode.answerInvalid,
        message: "The server sent a frame that makes no sense here."
    )

    /// As many as an inbox holds: what comes again comes out of that.
    private static let seenMax = 500

    /// The server sends at most 32 without an acknowledgement, and badges.
    private static let waitingMax = 500

    /// The server takes 50 frames in a second, and 200 at once.
    static let ackEveryMs = 25
    static let acksAtOnce = 100

    static func onMessage(_ step: inout ConnectionStep, _ message: ConnectionInput.Message) {
        let socket = message.socket
        if step.phase.confirmed?.opened.socket != socket { return }
        if step.connection.watches.contains(where: { $0.id == message.subscription }) {
            return step.act(.topic(watch: message.subscription, event: message.event))
        }
        guard let event = message.event.object, event["type"]?.string != nil, let eventId = event.text("eventId") else {
            return ConnectionAttempts.giveUp(&step, socket, nonsense)
        }
        // Of no queue: of a watch that has ended.
        guard let queue = step.connection.queues.first(where: { $0.name == message.subscription }) else { return }
        guard let messageId = message.ack, queue.waiting.count < waitingMax else {
            return ConnectionAttempts.giveUp(&step, socket, nonsense)
        }
        let added = ConnectionMessage(event: event, eventId: eventId, messageId: messageId, socket: socket)
        changeQueue(&step, queue.name) { $0.waiting.append(added) }
        handleWaiting(&step, queue.name)
    }

    /// An event counts as handled when that failed, too.
    static func onHandled(
        _ step: inout ConnectionStep,
        _ queue: String,
        _ message: ConnectionMessage,
        _ failure: ConnectionFailure?
    ) {
        if let failure { step.act(.trouble(failure)) }
        acknowledge(&step, queue, message)
        handleWaiting(&step, queue)
    }

    /// `since` is of the present connection, or of the last one where there is none.
    static func onAcknowledged(_ step: inout ConnectionStep, _ queue: String, _ messageId: String, _ socket: Int) {
        let present = step.phase.confirmed?.opened.socket ?? socket
        if present == socket { changeQueue(&step, queue) { $0.since = messageId } }
    }

    static func onTime(_ step: inout ConnectionStep) {
        for queue in step.connection.queues { handleWaiting(&step, queue.name) }
    }

    /// When the next message may be begun with; nil where none waits for the time.
    static func nextMessageMs(_ connection: DeviceConnection) -> Int? {
        connection.queues.contains { !$0.waiting.isEmpty && !isBusy(connection, $0.name) } ? connection.acksUntilMs : nil
    }

    private static func handleWaiting(_ step: inout ConnectionStep, _ name: String) {
        while let message = step.connection.queues.first(where: { $0.name == name })?.waiting.first {
            if isBusy(step.connection, name) { return }
            // A long backlog would have more acknowledgements sent than the server takes in so short a time.
            if step.connection.acksUntilMs > step.nowMs { return }
            changeQueue(&step, name) { $0.waiting.removeFirst() }
            if isNew(&step, message.eventId) {
                step.act(.asking(act: step.wait(.handle(queue: name, message: message)), .handle(event: message.event)))
            } else {
                acknowledge(&step, name, message)
            }
        }
    }

    /// One of a connection that has broken comes again.
    private static func acknowledge(_ step: inout ConnectionStep, _ queue: String, _ message: ConnectionMessage) {
        let socket = message.socket
        if step.phase.opened?.socket != socket { return }
        let id = message.messageId
        step.request(socket, "ACK", [StompHeader("id", id)], .ack(queue: queue, messageId: id, socket: socket))
        let sinceMs = max(step.connection.acksUntilMs, step.nowMs - acksAtOnce * ackEveryMs)
        step.connection.acksUntilMs = sinceMs + ackEveryMs
    }

    private static func isNew(_ step: inout ConnectionStep, _ eventId: String) -> Bool {
        // By octets: another event's id may look the same.
        if step.connection.seen.contains(where: { isSame($0, eventId) }) { return false }
        step.connection.seen.append(eventId)
        if step.connection.seen.count > seenMax { step.connection.seen.removeFirst() }
        return true
    }

    private static func isBusy(_ connection: DeviceConnection, _ name: String) -> Bool {
        connection.waiting.contains {
            if case .handle(let queue, _) = $0.purpose { queue == name } else { false }
        }
    }

    private static func changeQueue(_ step: inout ConnectionStep, _ name: String, _ change: (inout ConnectionQueue) -> Void) {
        guard let at = step.connection.queues.firstIndex(where: { $0.name == name }) else { return }
        change(&step.connection.queues[at])
    }
}
