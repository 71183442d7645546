// swift-tools-version: 6.2
import PackageDescription

/// Both scripts set this; a package that depends on this one by path must not inherit it.
let warningsAreErrors = Context.environment["DENDRO_WARNINGS_AS_ERRORS"] != nil
/// Builds the benchmark's LevelDB peer (Debian: libleveldb-dev).
let withLevelDB = Context.environment["DENDRO_BENCH_LEVELDB"] != nil

/// Builds the fuzzer into `crashlab`; tools/fuzz sets it. The flags are unsafe ones to the package
/// manager, which is why no other build has them.
let withFuzzer = Context.environment["DENDRO_FUZZ"] != nil

/// For `--sanitize thread`: links what the sanitizer must be told; see Tests/ThreadSanitizer/runtime.c.
let withThreadSanitizer = Context.environment["DENDRO_THREAD_SANITIZER"] != nil
/// For `--sanitize address`: tries its sight too; see Tests/AddressSanitizerTests.
let withAddressSanitizer = Context.environment["DENDRO_ADDRESS_SANITIZER"] != nil

let swiftSettings: [SwiftSetting] =
  [
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
  ] + (warningsAreErrors ? [.treatAllWarnings(as: .error)] : [])

/// Counts the ways through what is fuzzed, watches its memory, and keeps its assertions.
let fuzzedSettings: [SwiftSetting] =
  swiftSettings
  + (withFuzzer
    ? [.unsafeFlags(["-sanitize=fuzzer,address", "-assert-config", "Debug"])] : [])
/// The fuzzer's own `main` is not linked: the package manager gives ours another name. Gold cannot
/// read these objects.
let fuzzerLinkerSettings: [LinkerSetting] =
  withFuzzer ? [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"])] : []

var targets: [Target] = [
  .systemLibrary(name: "CDendroLZ4", pkgConfig: "liblz4", providers: [.apt(["liblz4-dev"])]),
  .systemLibrary(
    name: "CDendroXXHash", pkgConfig: "libxxhash", providers: [.apt(["libxxhash-dev"])]),
  .target(name: "DendroTree", swiftSettings: fuzzedSettings),
  .target(
    name: "DendroStorage", dependencies: ["CDendroLZ4", "CDendroXXHash"],
    swiftSettings: fuzzedSettings),
  .target(
    name: "DendroEngine", dependencies: ["DendroTree", "DendroStorage"],
    swiftSettings: fuzzedSettings),
  .target(name: "Dendro", dependencies: ["DendroEngine"], swiftSettings: fuzzedSettings),
  .target(
    name: "DendroTesting", dependencies: ["DendroStorage", "DendroEngine", "Dendro"],
    swiftSettings: swiftSettings),
  .target(
    name: "DendroCommandLine",
    dependencies: ["Dendro", "DendroEngine", "DendroStorage", "DendroTree"],
    path: "tools/dendro", exclude: ["main.swift"], swiftSettings: fuzzedSettings),
  .executableTarget(
    name: "DendroCommand", dependencies: ["DendroCommandLine"], path: "tools/dendro",
    exclude: ["CommandLineTool.swift", "Commands", "Demo", "Support"],
    swiftSettings: swiftSettings),
  .executableTarget(
    name: "DendroCrashLab",
    dependencies: [
      "Dendro", "DendroEngine", "DendroStorage", "DendroTesting", "TestSupport", "CrashHarness",
      "FuzzTargets",
    ],
    path: "tools/crashlab",
    swiftSettings: swiftSettings + (withFuzzer ? [.define("DENDRO_FUZZ")] : []),
    linkerSettings: fuzzerLinkerSettings),
  .target(
    name: "TestSupport",
    dependencies: ["DendroTree", "DendroStorage", "DendroEngine", "DendroTesting"],
    path: "Tests/TestSupport", swiftSettings: swiftSettings),
  .target(
    name: "CrashHarness",
    dependencies: [
      "Dendro", "DendroEngine", "DendroStorage", "DendroTree", "DendroTesting", "TestSupport",
    ],
    path: "Tests/CrashHarness", swiftSettings: swiftSettings),
  .target(
    name: "FuzzTargets",
    dependencies: [
      "Dendro", "DendroEngine", "DendroStorage", "DendroTree", "DendroTesting",
      "DendroCommandLine", "TestSupport", "CrashHarness", "CDendroLZ4",
    ],
    path: "Tests/FuzzTargets", swiftSettings: swiftSettings),
  .testTarget(
    name: "DendroTreeTests", dependencies: ["DendroTree", "TestSupport"],
    swiftSettings: swiftSettings),
  .testTarget(
    name: "DendroStorageTests", dependencies: ["DendroStorage", "DendroTesting", "TestSupport"],
    swiftSettings: swiftSettings),
  .testTarget(
    name: "DendroEngineTests",
    dependencies: ["DendroEngine", "DendroStorage", "DendroTree", "DendroTesting", "TestSupport"],
    swiftSettings: swiftSettings),
  .testTarget(
    name: "DendroTests", dependencies: ["Dendro", "DendroTesting", "TestSupport"],
    exclude: ["Fixtures"],
    swiftSettings: swiftSettings),
  .testTarget(
    name: "SimulationTests",
    dependencies: [
      "Dendro", "DendroEngine", "DendroStorage", "DendroTree", "DendroTesting", "TestSupport",
      "CrashHarness",
    ],
    swiftSettings: swiftSettings),
  .testTarget(
    name: "FixtureTests",
    dependencies: [
      "Dendro", "DendroEngine", "DendroStorage", "DendroTree", "DendroTesting", "TestSupport",
      "CrashHarness", "FuzzTargets", "DendroCommandLine",
    ],
    swiftSettings: swiftSettings),
  .testTarget(
    name: "CommandTests", dependencies: ["DendroCommand"], swiftSettings: swiftSettings),
  .testTarget(
    name: "CrashTests", dependencies: ["Dendro", "DendroCrashLab", "DendroCommand", "TestSupport"],
    swiftSettings: swiftSettings),
]

var benchDependencies: [Target.Dependency] = [
  "Dendro", "DendroTesting", "DendroTree",
]
if withLevelDB {
  targets.append(
    .systemLibrary(
      name: "CDendroLevelDB", path: "tools/CDendroLevelDB",
      providers: [.apt(["libleveldb-dev"])]))
  benchDependencies.append("CDendroLevelDB")
}
targets.append(
  .executableTarget(
    name: "DendroBench", dependencies: benchDependencies, path: "tools/bench",
    exclude: ["peer"],
    swiftSettings: swiftSettings))

if withThreadSanitizer {
  targets.append(.testTarget(name: "ThreadSanitizerTests", swiftSettings: swiftSettings))
  for target in targets where [.executable, .test].contains(target.type) {
    target.dependencies.append("ThreadSanitizer")
  }
  targets.append(
    .target(name: "ThreadSanitizer", path: "Tests/ThreadSanitizer", publicHeadersPath: "."))
}
if withAddressSanitizer {
  targets.append(.testTarget(name: "AddressSanitizerTests", swiftSettings: swiftSettings))
}

let package = Package(
  name: "dendro",
  products: [
    .library(name: "Dendro", targets: ["Dendro"]),
    .library(name: "DendroTesting", targets: ["DendroTesting"]),
    .executable(name: "dendro", targets: ["DendroCommand"]),
    .executable(name: "crashlab", targets: ["DendroCrashLab"]),
    .executable(name: "dendro-bench", targets: ["DendroBench"]),
  ],
  targets: targets,
  swiftLanguageModes: [.v6]
)
