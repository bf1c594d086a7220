package callsign.app

import java.util.concurrent.CopyOnWriteArrayList
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.onEach
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout

@Timeout(20)
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

    @Test
    fun `a collector that is too slow for the first events is told so, too`() = runBlocking {
        val stream = EventStream<String>(3) { "$it missed" }
        stream.tell("before")
        val slow = async(start = CoroutineStart.UNDISPATCHED) { stream.flow.take(4).toList() }
        for (number in 1..5) stream.tell("$number")
        assertEquals(listOf("2 missed", "3", "4", "5"), slow.await())
    }

    @Test
    fun `a collector that comes while the last event is told gets it once`() = runBlocking {
        repeat(2_000) {
            val stream = EventStream<String>(3) { "$it missed" }
            stream.tell("before")
            val told = CopyOnWriteArrayList<String>()
            val collecting = launch(Dispatchers.Default) { stream.flow.onEach { event -> told += event }.first { it == "more" } }
            stream.tellLast("the end")
            while (told.isEmpty()) yield()
            stream.tell("more")
            collecting.join()
            assertEquals(listOf("the end", "more"), told - "before")
        }
    }
}
