package callsign.app

import callsign.verify.LogClient
import java.io.File
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** What the rules of the artifact tell R8 and ProGuard: nothing is looked up by its name, so that nothing has to be kept. */
class ShrinkingTest {
    @Test
    fun `the rules are where R8 and ProGuard look, and keep nothing`() {
        val rules = listOf("META-INF/proguard", "META-INF/com.android.tools/r8").map { folder ->
            checkNotNull(javaClass.classLoader.getResource("$folder/callsign-app.pro")).readText()
        }
        assertEquals(1, rules.toSet().size)
        assertEquals(emptyList<String>(), rules.first().lines().filterNot { it.isEmpty() || it.startsWith("#") })
    }

    @Test
    fun `no class looks for another one, or for a member, by its name`() {
        val classes = listOf(Callsign::class.java, LogClient::class.java).flatMap { classesBeside(it) }
        assertTrue(classes.size > 400)
        val byName = classes.filter { file -> file.readText(Charsets.ISO_8859_1).let { text -> LOOKUPS.any { it in text } } }
        assertEquals(emptyList<File>(), byName)
    }

    /** All of the same package or below, where they were compiled to. */
    private fun classesBeside(one: Class<*>): List<File> {
        val place = File(one.protectionDomain.codeSource.location.toURI())
        // `mvn package` gives a jar of a package beside.
        val folder = if (place.isDirectory) place else File(place.parentFile, "classes")
        return folder.walk().filter { it.extension == "class" }.toList()
    }

    private companion object {
        /** As constant pools have them. */
        val LOOKUPS = listOf(
            "java/lang/reflect/",
            "java/util/ServiceLoader",
            "java/lang/ClassLoader",
            "java/io/ObjectInputStream",
            "kotlin/reflect/full",
            "forName",
            "getSimpleName",
            "getDeclared",
        )
    }
}
