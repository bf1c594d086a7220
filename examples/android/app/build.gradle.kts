plugins {
    id("com.android.application")
    id("org.jetbrains.kotlin.android")
    // Reads google-services.json, which Firebase's console gives.
    id("com.google.gms.google-services")
}

android {
    namespace = "org.example.calls"
    compileSdk = 36

    defaultConfig {
        applicationId = "org.example.calls"
        minSdk = 26
        targetSdk = 36
        versionCode = 1
        versionName = "0.1.0"
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_17
        targetCompatibility = JavaVersion.VERSION_17
    }
}

dependencies {
    implementation("dev.callsign:callsign-android:0.1.0")
    implementation("dev.callsign:callsign-app:0.1.0")
    implementation("com.squareup.okhttp3:okhttp:5.5.1")
    implementation("org.jetbrains.kotlinx:kotlinx-coroutines-android:1.11.0")
    implementation("androidx.core:core-telecom:1.0.0")
    implementation("androidx.credentials:credentials:1.5.0")
    implementation("androidx.credentials:credentials-play-services-auth:1.5.0")
    implementation("com.google.firebase:firebase-messaging:25.0.0")
}
