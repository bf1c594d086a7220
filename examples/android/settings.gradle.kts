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
        mavenLocal { content { includeGroup("dev.callsign") } }
    }
}

rootProject.name = "calls"
include(":app")
