package callsign.app

import kotlinx.coroutines.CoroutineExceptionHandler
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.async

/**
 * One step at a time, as in an event loop: fields that only its coroutines change need no lock. It takes threads of
 * `Dispatchers.Default`, and none while it waits.
 */
internal class Operations(onFailure: (Throwable) -> Unit) {
    val scope = CoroutineScope(
        SupervisorJob() + Dispatchers.Default.limitedParallelism(1) + CoroutineExceptionHandler { _, error -> onFailure(error) },
    )

    /** Goes on to its end where the caller is cancelled: half an operation would leave a call between two states. */
    suspend fun <Value> run(act: suspend () -> Value): Value = scope.async { act() }.await()
}
