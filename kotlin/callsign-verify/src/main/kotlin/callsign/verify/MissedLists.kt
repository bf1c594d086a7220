/**
 * Device lists that an app missed. The server has them, and the log says which they are: exactly the entries of the user's
 * slot 0, in their order. Without them a later list is neither taken nor refused.
 */
package callsign.verify

import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive

/** Reads one reply of `GET user/device-lists`. */
public fun interface DeviceListReader {
    /** Lists in base64. [after] is a seq, null for all from the last list of seq 0 on. Throws where there is no answer. */
    public suspend fun read(userId: String, after: Long?): List<String>
}

/** The newest list, which the log proves at leaf [index]. */
internal class NewestList(val list: DeviceList, val octets: ByteArray, val vrfHash: String, val index: Long)

/** Ends a check at once; [outcome] is a [Refusal] or [Unanswered]. */
internal class Unfollowed(val outcome: DevicesOutcome) : Exception()

/** Its functions throw [Unfollowed]. */
internal class MissedLists(private val lookups: KeyLookups, private val reader: DeviceListReader) {
    /** From a known list of a lower seq, whose leaf is [knownIndex], to the newest one. */
    suspend fun fromKnown(newest: NewestList, known: ByteArray, knownIndex: Long): ListKind {
        val entries = history(newest)
        val hash = hashOf(known)
        if (entries.none { it.index == knownIndex && it.publicKey == hash })
            throw withheld("the history leaves out the list known before")
        val before = parseDeviceList(known)
        val lists = chain(newest, entries, before.seq)
        val first = judgeDeviceList(newest.list.userId, known, lists.first())
        // The list before the first one here has the seq of the known one, and is another.
        if (first is RefusedList && first.reason == DeviceListRefusal.WRONG_PREVIOUS_HASH) {
            if (newest.list.createdAtMs <= before.createdAtMs) throw refused("the list is older than the one known before")
            assertSuccession(newest, lists)
            return ListKind.RESET
        }
        if (entries.count { it.index > knownIndex } > lists.size)
            throw withheld("the log has more lists than the server shows")
        assertSuccession(newest, listOf(known) + lists)
        return ListKind.SUCCESSOR
    }

    /** From the list that a link names by its hash to the newest one. */
    suspend fun fromLinked(newest: NewestList, listHash: String): ListKind {
        val entries = history(newest)
        if (entries.none { it.publicKey == listHash })
            throw refused("the link names a device list that the log does not have of this user")
        val lists = chain(newest, entries, -1)
        assertSuccession(newest, lists)
        return if (lists.any { hashOf(it) == listHash }) ListKind.SUCCESSOR else ListKind.RESET
    }

    /** All of slot 0, the newest list's entry last. */
    private suspend fun history(newest: NewestList): List<LoggedKey> {
        val claim = OwnDevice(newest.list.userId, DEVICE_LIST_SLOT, newest.vrfHash, listOf(hashOf(newest.octets)))
        return when (val report = lookups.checkOwnKeys(claim)) {
            is OwnKeysReport -> report.entries.filter { it.index <= newest.index }
            is Refusal -> throw Unfollowed(report)
            is Unanswered -> throw Unfollowed(report)
        }
    }

    /** The lists after a seq up to the newest one, which are the newest entries of slot 0. */
    private suspend fun chain(newest: NewestList, entries: List<LoggedKey>, after: Long): List<ByteArray> {
        val count = newest.list.seq - after
        // Bound: a server could make any seq, but proves each entry.
        if (count > entries.size) throw withheld("the log has fewer lists than were signed")
        val lists = mutableListOf<ByteArray>()
        while (lists.size < count) {
            val page = page("${newest.list.userId}", after + lists.size)
            if (page.isEmpty()) throw withheld("the server leaves out lists")
            lists += page.take((count - lists.size).toInt())
        }
        val logged = entries.takeLast(lists.size)
        if (lists.indices.any { hashOf(lists[it]) != logged[it].publicKey })
            throw withheld("the server shows other lists than the log has")
        return lists
    }

    private suspend fun page(userId: String, seq: Long): List<ByteArray> = try {
        reader.read(userId, seq.takeIf { it >= 0 }).map { decodeBase64(it) }
    } catch (error: Exception) {
        currentCoroutineContext().ensureActive()
        throw withheld("the device lists could not be read: ${error.message}")
    }
}

/** Refused unless each of these lists is signed by a device of the one before it. */
private fun assertSuccession(newest: NewestList, lists: List<ByteArray>) {
    for ((before, next) in lists.zipWithNext()) {
        when (val verdict = judgeDeviceList(newest.list.userId, before, next)) {
            is RefusedList -> throw refused(verdict.detail)
            is TakenList -> if (verdict.kind != ListKind.SUCCESSOR) throw refused("a list between starts over")
        }
    }
}

private fun hashOf(octets: ByteArray): String = encodeBase64(deviceListHash(octets))

private fun withheld(detail: String) = Unfollowed(Unanswered(detail))

private fun refused(detail: String) = Unfollowed(Refusal(Check.DEVICE_LIST, detail))
