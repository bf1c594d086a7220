package callsign.app

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.onEach
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

class EventStreamTest {
    @Test
    fun `a collector that is too slow is told how many events it has missed, and not the last one`() = runBlocking {
        val stream = EventStream<String>(3) { "$it missed" }
        val gate = CompletableDeferred<Unit>()
        fun Flow<String>.begun(count: Int) = async(start = CoroutineStart.UNDISPATCHED) { take(count).toList() }
        val slow = stream.flow.onEach { gate.await() }.begun(5)
        val quick = async(start = CoroutineStart.UNDISPATCHED) { stream.flow.first() }
        stream.tell("0")
        assertEquals("0", quick.await())
        for (number in 1..5) stream.tell("$number")
        stream.tellLast("the end")
        gate.complete(Unit)
        assertEquals(listOf("0", "3 missed", "4", "5", "the end"), slow.await())
        assertEquals("the end", stream.flow.first())
    }
}
