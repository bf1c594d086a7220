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
        // callsign-app and callsign-verify, after `mvn -f kotlin install`.
        mavenLocal { content { includeGroup("callsign") } }
    }
}

rootProject.name = "calls"
include(":app")
