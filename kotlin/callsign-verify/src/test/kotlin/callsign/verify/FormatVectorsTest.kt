/** The formats of the log by their published vectors: acceptances and refusals. */
package callsign.verify

import callsign.verify.LogErrorCode.KEY_INVALID
import callsign.verify.LogErrorCode.MALFORMED
import callsign.verify.LogErrorCode.SIGNATURE_INVALID
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

class SignedNoteVectorsTest {
    private val vectors = readVectors("signed-note")

    @Test
    fun `published Ed25519 keys are read, and those of other types refused`() {
        for (key in vectors.list("keys")) {
            val vkey = key.text("vkey")
            val type = key.small("type")
            val id = key.text("key_id_hex").toUInt(16)
            if (type != ED25519_TYPE) {
                assertEquals(KEY_INVALID, codeOf { parseVerifierKey(vkey) })
                val publicKey = fromBase64(vkey.split('+').drop(2).joinToString("+")).drop(1).toByteArray()
                assertEquals(id, keyIdOf(key.text("name"), type, publicKey))
                continue
            }
            val verifier = parseVerifierKey(vkey)
            assertEquals(key.text("name"), verifier.name)
            assertEquals(id, verifier.keyId)
            assertEquals(key.text("public_key_hex"), toHex(verifier.publicKey))
        }
    }

    @Test
    fun `published key ids come out`() {
        for (key in vectors.list("key_id")) {
            val id = keyIdOf(key.text("name"), key.small("type"), key.hex("public_key_hex"))
            assertEquals(key.text("key_id_hex"), hexId(id))
        }
    }

    @Test
    fun `published invalid keys are refused`() {
        for (key in vectors.list("invalid_vkeys"))
            assertEquals(KEY_INVALID, codeOf { parseVerifierKey(key.text("vkey")) }, key.text("why"))
    }

    @Test
    fun `every part of a key, and a key with a character moved on, is refused`() {
        val vkey = vectors.list("keys").first { it.small("type") == ED25519_TYPE }.text("vkey")
        val parts = vkey.indices.flatMap { from -> (from..vkey.length).map { vkey.substring(from, it) } } - vkey
        val moved = vkey.indices.map { vkey.replaceRange(it, it + 1, "${vkey[it] + 1}") }
        for (changed in parts + moved) assertEquals(KEY_INVALID, codeOf { parseVerifierKey(changed) }, changed)
    }

    @Test
    fun `published notes are opened or refused`() {
        for (case in vectors.list("open")) {
            val verifiers = case.texts("known").map(::parseVerifierKey)
            val text = case.textOrNull("note")
            val octets = text?.toByteArray() ?: case.hex("note_hex")
            val forms = listOfNotNull({ openNote(octets, verifiers) }, text?.let { { openNote(it, verifiers) } })
            for (open in forms) {
                if (!case.flag("ok")) {
                    assertEquals(codeFor(case.text("error")), codeOf { open() }, case.text("id"))
                    continue
                }
                val opened = open()
                assertEquals(case.texts("verified"), opened.signatures.map(NoteSignature::name), case.text("id"))
                assertEquals(case.texts("unverified"), opened.unverified.map(NoteSignature::name), case.text("id"))
            }
        }
        for (case in vectors.list("verify")) openNote(case.text("note"), listOf(parseVerifierKey(case.text("vkey"))))
    }

    @Test
    fun `published signature lines are read or refused`() {
        val signed = vectors.list("verify").first()
        val verifiers = listOf(parseVerifierKey(signed.text("vkey")))
        val lines = vectors["signature_line_parse"]
        for (case in lines.list("cases")) {
            val note = "${signed.text("note")}${case.text("line")}\n"
            val result = case.text("result")
            // A line too short for a key id is skipped by sigsum and refused by Go; we are strict.
            if (result.startsWith("error") || "too short" in result) {
                assertEquals(MALFORMED, codeOf { openNote(note, verifiers) }, result)
                continue
            }
            val added = openNote(note, verifiers).unverified.last()
            assertEquals(result == "accept", added.name == lines.text("want_name"))
            case.textOrNull("key_id_hex")?.let { assertEquals(it, hexId(added.keyId)) }
        }
    }

    @Test
    fun `a note with any character changed, dropped or doubled does not open`() {
        val signed = vectors.list("verify").first()
        val verifiers = listOf(parseVerifierKey(signed.text("vkey")))
        val note = signed.text("note")
        for (at in note.indices) {
            for (part in listOf("", "x", "\n", " ", "+", "\u2014", "${note[at]}${note[at]}")) {
                val changed = note.replaceRange(at, at + 1, part)
                if (changed == note) continue
                // A signature of another name is one of an unknown key.
                val opened = codeOf { assertEquals(0, openNote(changed, verifiers).signatures.size) }
                assertTrue(opened in setOf(MALFORMED, SIGNATURE_INVALID), "$part at $at")
            }
        }
    }

    @Test
    fun `names hold no character that Unicode calls white space`() {
        val spaces = "\t\u000b\r \u0085\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"
        for (name in spaces.map { "a${it}b" } + listOf("", "a+b", "a\u0001b", "a\ud800", "\udc00a"))
            assertFalse(isKeyName(name), toHex(name.toByteArray()))
        // U+FEFF is no white space, nor is U+001F of Kotlin's `isWhitespace`, which notes refuse as a control character.
        for (name in listOf("a", "\u00fcn\u00ef\ufeffc\u00f6d\u00e9", "\ud83d\ude00")) assertTrue(isKeyName(name))
    }

    private fun codeFor(error: String): LogErrorCode = when {
        error.startsWith("malformed") -> MALFORMED
        error == "ambiguous key" -> KEY_INVALID
        else -> SIGNATURE_INVALID
    }
}

class CheckpointVectorsTest {
    private val vectors = readVectors("checkpoint")

    @Test
    fun `published checkpoints verify`() {
        for (case in vectors.list("verify")) {
            val verifiers = listOf(parseVerifierKey(case.text("vkey")))
            if (!case.flag("ok")) {
                assertEquals(SIGNATURE_INVALID, codeOf { openNote(case.text("note"), verifiers) })
                continue
            }
            val checkpoint = parseCheckpoint(openNote(case.text("note"), verifiers).text)
            assertEquals(case.number("size"), checkpoint.treeSize)
        }
    }

    @Test
    fun `published texts are read or refused, roots of other lengths and empty lines refused`() {
        for (case in vectors.list("parse")) {
            val lines = case.text("text").split('\n')
            // Leniencies of the libraries named in the remarks, against the specification.
            val isLax = lines.first().isEmpty() || "" in lines.drop(3).dropLast(1) || rootOctets(lines.getOrNull(2)) != 32
            val expected = if (!case.flag("ok") || isLax) MALFORMED else null
            assertEquals(expected, codeOf { parseCheckpoint(case.text("text")) }, case.text("id"))
        }
    }

    @Test
    fun `the checkpoints of the webtessera log open`() {
        val log = vectors["webtessera"]
        val name = log.text("skey").split('+')[2]
        val vkey = readVectors("signed-note").list("keys").find { it.textOrNull("skey") == log.text("skey") }
        for (checkpoint in log.list("checkpoints")) {
            val read = readNote(checkpoint.text("note"))
            assertEquals(checkpoint.number("size"), parseCheckpoint(read.text).treeSize)
            assertEquals(listOf(name), read.signatures.map(NoteSignature::name))
            if (vkey != null) openNote(checkpoint.text("note"), listOf(parseVerifierKey(vkey.text("vkey"))))
        }
    }

    @Test
    fun `origins have 1 to 255 octets`() {
        val root = toBase64(ByteArray(32))
        val lengths = vectors["origin_length"]
        for (octets in lengths.texts("valid_bytes")) parseCheckpoint("${"o".repeat(octets.toInt())}\n1\n$root\n")
        for (octets in lengths.texts("invalid_bytes"))
            assertEquals(MALFORMED, codeOf { parseCheckpoint("${"o".repeat(octets.toInt())}\n1\n$root\n") })
        assertEquals(MALFORMED, codeOf { parseCheckpoint("${"\u00fc".repeat(128)}\n1\n$root\n") })
    }

    @Test
    fun `sizes are decimal numbers below 2^53`() {
        val root = toBase64(ByteArray(32))
        assertEquals(SAFE_MAX, parseCheckpoint("o\n9007199254740991\n$root\n").treeSize)
        val wrong = listOf("01", "1 ", "+1", "", "1.0", "-1", "9007199254740992", "18446744073709551615", "\u0663")
        for (size in wrong) assertEquals(MALFORMED, codeOf { parseCheckpoint("o\n$size\n$root\n") }, size)
    }

    private fun rootOctets(line: String?): Int? = try {
        fromBase64(line.orEmpty()).size
    } catch (_: IllegalArgumentException) {
        null
    }
}

class CosignatureVectorsTest {
    private val vectors = readVectors("cosignature")

    /** When the witness cosigned the text by each line that has its name and id. */
    private fun timesOf(text: String, witness: VerifierKey, lines: String): List<Long?> =
        readNote("$text\n$lines").signatures
            .filter { it.name == witness.name && it.keyId == witness.keyId }
            .map { cosignedAtSeconds(text, witness, it.signature) }

    @Test
    fun `published cosignatures verify with their times, and on another text they do not`() {
        for (case in vectors.list("sign_and_verify") + vectors.list("verify_only")) {
            val witness = parseWitnessKey(case.text("vkey"))
            val text = case.text("text")
            assertEquals(listOf(case.number("time")), timesOf(text, witness, case.text("line")))
            assertEquals(listOf<Long?>(null), timesOf("${text}more\n", witness, case.text("line")))
        }
    }

    @Test
    fun `with any bit changed, in time or signature, a cosignature does not verify`() {
        val case = vectors.list("verify_only").first()
        val witness = parseWitnessKey(case.text("vkey"))
        val octets = fromBase64(case.text("line").trim().split(' ')[2]).drop(4).toByteArray()
        for (bit in 0 until 8 * octets.size) {
            val changed = octets.copyOf()
            changed[bit / 8] = (changed[bit / 8].toInt() xor (1 shl bit % 8)).toByte()
            assertNull(cosignedAtSeconds(case.text("text"), witness, changed), "bit $bit")
        }
    }

    @Test
    fun `lines of another length do not count, nor does a signature over the text alone`() {
        val answer = vectors["response_parse"]
        val witness = parseWitnessKey(answer.text("vkey"))
        assertEquals(listOf(1234L, null), timesOf(answer.text("text"), witness, answer.text("body")))
        for (case in vectors["timestamp_parse"].list("cases").take(2)) {
            val octets = case.base64("signature_base64").drop(4).toByteArray()
            assertEquals(case.flag("ok"), octets.size == 72)
            assertNull(cosignedAtSeconds("any\n", witness, octets))
        }
    }

    @Test
    fun `both forms of a witness key are one key`() {
        for (case in vectors.list("key_forms")) {
            val witness = parseWitnessKey(case.text("cosignature_vkey"))
            val other = parseWitnessKey(case.textOrNull("ed25519_vkey") ?: continue)
            assertEquals(witness.name to witness.keyId, other.name to other.keyId)
            assertArrayEquals(witness.publicKey, other.publicKey)
        }
        val mldsa = "wit+8a02ff48+BAfe++5m5B3xn/Y6v0aIaD81QA6knU+YssC0ku5oFQ4H"
        assertEquals(KEY_INVALID, codeOf { parseWitnessKey(mldsa) })
    }
}

class WitnessPolicyVectorsTest {
    /** Go's library takes what the specification forbids: comments behind words, and a key twice. */
    private val forbidden = setOf("whitespace and comments", "group numerical", "group all", "group any")

    @Test
    fun `published policies are read as Go reads them, but for what the specification forbids`() {
        for (case in readVectors("witness-policy").list("cases")) {
            val id = case.text("id")
            if (!case.flag("ok") || id in forbidden) {
                assertEquals(MALFORMED, codeOf { parsePolicy(case.text("policy")) }, id)
                continue
            }
            val quorum = parsePolicy(case.text("policy")).quorum as WitnessGroup
            case.textOrNull("top_threshold")?.let { assertEquals(it.toInt(), quorum.threshold, id) }
        }
    }

    @Test
    fun `a quorum is as old as its member that counts last`() {
        fun witness(number: Int) = Witness("w$number", VerifierKey("w$number", 0u, ByteArray(0)))
        fun secondsOf(quorum: QuorumMember, vararg times: Long?) =
            quorumSeconds(quorum) { times[it.name.drop(1).toInt() - 1] }
        val (one, two, three, four) = (1..4).map(::witness)
        val group = WitnessGroup("g", 2, listOf(one, two, three))
        assertEquals(5, secondsOf(one, 5))
        assertEquals(7, secondsOf(group, 5, 9, 7))
        assertNull(secondsOf(group, 5, null, null))
        val nested = WitnessGroup(
            "both",
            2,
            listOf(WitnessGroup("g", 1, listOf(one, two)), WitnessGroup("h", 2, listOf(three, four))),
        )
        assertEquals(7, secondsOf(nested, 1, 9, 8, 7))
        assertEquals(1, secondsOf(nested, 1, null, 8, 7))
        assertNull(secondsOf(nested, 1, 9, 8, null))
    }
}

class TlogProofVectorsTest {
    private val vectors = readVectors("tlog-proof")

    @Test
    fun `published proofs are read`() {
        for (case in vectors.list("serialize")) {
            val proof = parseProof(case.text("text"))
            assertEquals(case.text("index"), "${proof.index}")
            assertEquals(case.texts("hashes"), proof.path.map(::toBase64))
            assertEquals(case.textOrNull("extra_base64"), proof.extra?.let(::toBase64))
            assertEquals(case.text("checkpoint"), proof.checkpoint)
        }
    }

    @Test
    fun `published refusals are refused, and so is what only Go lets pass`() {
        for (case in vectors.list("parse_error")) {
            val long = "${vectors.text("header")}\nindex 0\n${"a".repeat(66_560)}\n\ncheckpoint\n"
            assertEquals(MALFORMED, codeOf { parseProof(case.textOrNull("text") ?: long) }, case.text("id"))
        }
        for (case in vectors.list("strictness")) {
            assertEquals("refuse", case.text("recommended"))
            assertEquals(MALFORMED, codeOf { parseProof(case.text("text")) }, case.text("id"))
        }
    }

    @Test
    fun `proofs of another key transparency log lead from its entries to its signed root`() {
        for (case in vectors.list("end_to_end")) {
            val proof = parseProof(case.text("proof"))
            val verifiers = listOf(parseVerifierKey(case.text("log_vkey")))
            val opened = openNote(proof.checkpoint, verifiers)
            val checkpoint = parseCheckpoint(opened.text)
            val leafHash = hashLeaf(case.hex("entry_hex"))
            assertEquals(case.text("leaf_hash_base64"), toBase64(leafHash))
            assertEquals(case.number("index"), proof.index)
            assertEquals(if ("three" in case.text("id")) 3 else 0, opened.unverified.size)
            fun claim(index: Long) =
                InclusionClaim(leafHash, index, checkpoint.treeSize, proof.path, checkpoint.rootHash)
            verifyInclusion(claim(proof.index))
            // Changed in one place each, the proof holds for nothing.
            for (index in listOf(proof.index - 1, proof.index + 1))
                assertEquals(LogErrorCode.PROOF_INVALID, codeOf { verifyInclusion(claim(index)) })
            val renamed = proof.checkpoint.replaceFirst("test.", "tesu.")
            assertEquals(SIGNATURE_INVALID, codeOf { openNote(renamed, verifiers) })
        }
    }
}

class TileVectorsTest {
    private val vectors = readVectors("tiles")

    @Test
    fun `published paths are written`() {
        for (case in vectors.list("paths").filter { it.text("kind") == "hash" }) {
            val width = case.small("width").let { if (it == 0) TILE_WIDTH else it }
            assertEquals(case.text("path"), formatTilePath(Tile(case.small("level"), case.number("index"), width)))
        }
        for (tile in listOf(Tile(64, 0, 1), Tile(-1, 0, 1), Tile(0, -1, 1), Tile(0, 0, 0), Tile(0, 0, 257)))
            assertEquals(MALFORMED, codeOf { formatTilePath(tile) }, "$tile")
    }

    @Test
    fun `tiles have their published widths in a tree`() {
        for (case in vectors["tiles_for_size"].list("cases")) {
            val size = case.number("size")
            for (level in case.list("levels")) {
                val number = level.small("level")
                val full = level.number("full")
                if (full > 0) assertEquals(TILE_WIDTH, tileWidth(number, full - 1, size))
                assertEquals(level.small("partial_width"), tileWidth(number, full, size), "level $number of $size")
                assertEquals(0, tileWidth(number, full + 1, size))
            }
        }
    }

    @Test
    fun `nodes are in their published tiles`() {
        for (case in vectors["node_to_tile"].list("cases")) {
            val range = tileOfNode(Node(case.small("tree_level"), case.number("tree_index")))
            assertEquals(case.small("tile_level") to case.number("tile_index"), range.level to range.index)
            val covered = 1 shl case.small("node_level")
            assertEquals(covered, range.end - range.start)
            assertEquals(case.small("node_index") * covered, range.start)
        }
    }
}
