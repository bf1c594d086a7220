package callsign.app.connection

import callsign.app.CallsignException.LocalCode

/** Watches of topics: each is subscribed once on each connection, for as long as the app wants it. */
internal object Watches {
    fun watch(step: Step, command: Int, destination: String) {
        if (step.phase is Phase.Off || step.phase is Phase.Elsewhere) return step.settle(command, OFFLINE)
        val added = Watch("watch-$command", destination, command)
        step.connection = step.connection.copy(watches = step.connection.watches + added)
        step.phase.confirmedOrNull?.let { subscribe(step, it.opened.socket, added) }
    }

    /**
     * A subscription that is under way ends when the server has it: UNSUBSCRIBE of a refused one would end the connection.
     */
    fun unwatch(step: Step, id: String) {
        val left = step.connection.watches.find { it.id == id } ?: return
        step.connection = step.connection.copy(watches = step.connection.watches - left)
        if (left.socket != null && left.socket == step.phase.openedOrNull?.socket) leave(step, left.socket, id)
    }

    /** Returns the number of the act. */
    fun subscribe(step: Step, socket: Int, watch: Watch): Int {
        val headers = mapOf("id" to watch.id, "destination" to watch.destination)
        return step.request(socket, "SUBSCRIBE", headers, Purpose.Watch(socket, watch.id))
    }

    fun onWatched(step: Step, socket: Int, id: String) {
        val watch = step.connection.watches.find { it.id == id }
        if (watch != null) {
            val watched = watch.copy(command = null, socket = socket)
            val watches = step.connection.watches.map { if (it == watch) watched else it }
            step.connection = step.connection.copy(watches = watches)
            if (watch.command != null) step.act(Act.Settle(watch.command, watch = id))
        } else if (socket == step.phase.openedOrNull?.socket) leave(step, socket, id)
    }

    /** Where the connection broke, the next one tries again. */
    fun onRefused(step: Step, id: String, failure: Failure) {
        if (failure.code == LocalCode.OFFLINE) return
        val watch = step.connection.watches.find { it.id == id } ?: return
        step.connection = step.connection.copy(watches = step.connection.watches - watch)
        step.settle(watch.command, failure)
    }

    private fun leave(step: Step, socket: Int, id: String) =
        step.act(Act.Tell(socket, "UNSUBSCRIBE", mapOf("id" to id)))
}
