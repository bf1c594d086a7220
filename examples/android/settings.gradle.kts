pluginManagement {
    repositories {
        google()
        mavenCentral()
        gradlePluginPortal()
    }
}

dependencyResolutionManagement {
    repositories {
        google()
        mavenCentral()
        // After `mvn -f kotlin -P android-example install`.
        mavenLocal { content { includeGroup("callsign") } }
    }
}

rootProject.name = "calls"
include(":app")
