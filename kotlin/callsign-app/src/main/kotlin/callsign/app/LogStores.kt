/**
 * What this app remembers of the log, in its storage: for each user of the app and each log, since a development server that
 * starts anew has another log of the same name.
 */
package callsign.app

import callsign.verify.CheckpointStore
import callsign.verify.Evidence
import callsign.verify.KeptCheckpoint
import callsign.verify.KnownUser
import callsign.verify.KnownUserStore
import callsign.verify.ListedPerson
import callsign.verify.LogException
import callsign.verify.LogKeys
import callsign.verify.formatKeptCheckpoint
import callsign.verify.formatKnownUser
import callsign.verify.parseKeptCheckpoint
import callsign.verify.parseKnownUser
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject

internal class LogStores(private val storage: AppStorage, userId: ULong, private val keys: LogKeys) {
    private val scope = "$userId.${keys.name}"

    val checkpoints: CheckpointStore = object : CheckpointStore {
        override suspend fun get(origin: String): KeptCheckpoint? =
            storage.read(keyOf(origin)) { readOrNull { parseKeptCheckpoint("$it") } }

        override suspend fun put(kept: KeptCheckpoint) =
            storage.write(keyOf(kept.checkpoint.origin), objectIn(formatKeptCheckpoint(kept)))

        /** The name under which the checkpoint of the log, or of its index, is kept. */
        private fun keyOf(origin: String) = "checkpoint.$scope${if (origin == keys.origin) "" else ".index"}"
    }

    val knownUsers: KnownUserStore = object : KnownUserStore {
        override suspend fun get(userId: String): KnownUser? = storage.read(keyOf(userId)) { kept ->
            readOrNull { parseKnownUser("$kept") }?.takeIf { it.userId == userId }
        }

        override suspend fun put(known: KnownUser) = storage.write(keyOf(known.userId), objectIn(formatKnownUser(known)))

        private fun keyOf(userId: String) = "known.$scope.$userId"
    }

    /** The person of a link whose devices have not been verified yet. */
    suspend fun expected(userId: ULong): ListedPerson? =
        storage.read(expectedKey(userId)) { kept -> kept.text("listHash")?.let { ListedPerson(userId, it) } }

    suspend fun putExpected(person: ListedPerson) =
        storage.write(expectedKey(person.userId), bodyOf(mapOf("listHash" to person.listHash)))

    suspend fun forgetExpected(userId: ULong) = storage.write(expectedKey(userId), null)

    /** Proofs that the log has lied, the oldest first. */
    suspend fun evidence(): List<Evidence> = storage.read("evidence.$scope") { kept ->
        (kept["pairs"] as? JsonArray)?.map { pair ->
            val members = pair as? JsonObject ?: return@read null
            Evidence(members.text("known") ?: return@read null, members.text("seen") ?: return@read null)
        }
    }.orEmpty()

    suspend fun addEvidence(evidence: Evidence) {
        val all = evidence()
        if (all.size >= EVIDENCE_MAX || evidence in all) return
        val pairs = (all + evidence).map { bodyOf(mapOf("known" to it.known, "seen" to it.seen)) }
        storage.write("evidence.$scope", JsonObject(mapOf("pairs" to JsonArray(pairs))))
    }

    private fun expectedKey(userId: ULong) = "expected.$scope.$userId"

    private fun <Value> readOrNull(read: () -> Value): Value? = try {
        read()
    } catch (_: LogException) {
        null
    }

    private companion object {
        /** Each of them is proof enough. */
        const val EVIDENCE_MAX = 16
    }
}
