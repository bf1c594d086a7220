package callsign.app

import kotlinx.coroutines.channels.BufferOverflow
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.onSubscription

/**
 * Events for each collector of [flow], in order. One that is more than [capacity] behind holds up nobody: it misses the oldest, and
 * is told how many by [missed] in their place.
 */
internal class EventStream<Event : Any>(capacity: Int, private val missed: (count: Int) -> Event) {
    private val events =
        MutableSharedFlow<IndexedValue<Event>>(extraBufferCapacity = capacity, onBufferOverflow = BufferOverflow.DROP_OLDEST)
    private var count = 0

    /** Who comes later gets only this one. */
    private var last: IndexedValue<Event>? = null

    val flow: Flow<Event> = flow {
        var expected = 0
        val begun = events.onSubscription {
            val end = synchronized(this@EventStream) { last.also { expected = it?.index ?: count } }
            if (end != null) emit(end)
        }
        begun.collect { (index, event) ->
            val missedCount = index - expected
            // It came while the collector began, which has it already if it is the last one.
            if (missedCount < 0) return@collect
            if (missedCount > 0) emit(missed(missedCount))
            expected = index + 1
            emit(event)
        }
    }

    @Synchronized
    fun tell(event: Event) {
        events.tryEmit(IndexedValue(count++, event))
    }

    @Synchronized
    fun tellLast(event: Event) {
        last = IndexedValue(count, event)
        tell(event)
    }
}
