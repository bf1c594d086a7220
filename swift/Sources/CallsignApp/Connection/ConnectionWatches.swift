/// Watches of topics: each is subscribed once on each connection, for as long as the app wants it.
enum ConnectionWatches {
    static func watch(_ step: inout ConnectionStep, _ command: Int, _ destination: String) {
        if step.phase.isIdle { return step.settle(command, error: .offline) }
        let added = ConnectionWatch(id: "watch-\(command)", destination: destination, command: command)
        step.connection.watches.append(added)
        if let confirmed = step.phase.confirmed { subscribe(&step, confirmed.opened.socket, added) }
    }

    /// A subscription that is under way ends when the server has it: UNSUBSCRIBE of a refused one would end the connection.
    static func unwatch(_ step: inout ConnectionStep, _ id: String) {
        guard let at = step.connection.watches.firstIndex(where: { $0.id == id }) else { return }
        let left = step.connection.watches.remove(at: at)
        if let socket = left.socket, socket == step.phase.opened?.socket { leave(&step, socket, id) }
    }

    /// Returns the number of the act.
    @discardableResult
    static func subscribe(_ step: inout ConnectionStep, _ socket: Int, _ watch: ConnectionWatch) -> Int {
        let headers = [StompHeader("id", watch.id), StompHeader("destination", watch.destination)]
        return step.request(socket, "SUBSCRIBE", headers, .watch(socket: socket, id: watch.id))
    }

    static func onWatched(_ step: inout ConnectionStep, _ socket: Int, _ id: String) {
        guard let at = step.connection.watches.firstIndex(where: { $0.id == id }) else {
            if socket == step.phase.opened?.socket { leave(&step, socket, id) }
            return
        }
        let command = step.connection.watches[at].command
        step.connection.watches[at].command = nil
        step.connection.watches[at].socket = socket
        if let command { step.act(.settle(command: command, watch: id)) }
    }

    /// Where the connection broke, the next one tries again.
    static func onRefused(_ step: inout ConnectionStep, _ id: String, _ failure: ConnectionFailure) {
        if failure.code == CallsignError.LocalCode.offline { return }
        guard let at = step.connection.watches.firstIndex(where: { $0.id == id }) else { return }
        step.settle(step.connection.watches.remove(at: at).command, error: failure)
    }

    private static func leave(_ step: inout ConnectionStep, _ socket: Int, _ id: String) {
        step.act(.tell(socket: socket, command: "UNSUBSCRIBE", headers: [StompHeader("id", id)]))
    }
}
