// swift-tools-version: 6.2
import PackageDescription

/// The project's own scripts set it. Packages that depend on this one must not inherit it.
let warningsAreErrors = Context.environment["DENDRO_WARNINGS_AS_ERRORS"] != nil
/// `tools/fuzz` sets it. The package manager calls these flags unsafe, so no other build has them.
let isFuzzing = Context.environment["DENDRO_FUZZ"] != nil
/// `tools/test` sets it. Its flags are unsafe as well.
let isForTests = Context.environment["DENDRO_TEST_BUILD"] != nil
/// `tools/test --full` says so: the tests run at their full length.
let isFullRun = Context.environment["DENDRO_TEST_BUILD"] == "full"

let settings: [SwiftSetting] =
  [
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  ] + (warningsAreErrors ? [.treatAllWarnings(as: .error)] : [])
let sanitizer = ["-sanitize=fuzzer,address"]
/// For what is fuzzed: counts the branches, watches the memory, keeps the assertions.
let fuzzedSettings: [SwiftSetting] =
  settings + (isFuzzing ? [.unsafeFlags(sanitizer + ["-assert-config", "Debug"])] : [])
/// The fuzzer's own `main` is not linked: the package manager renames ours. Gold cannot read the objects.
let labLinking: [LinkerSetting] =
  isFuzzing ? [.unsafeFlags(sanitizer + ["-use-ld=lld"])] : []

/// What the tests execute most. `tools/test` optimizes these modules and keeps their assertions. For the others,
/// the optimizer would take more time than it saves.
let hotModules: Set = [
  "DendroTree", "DendroStorage", "DendroEngine", "DendroRules", "DendroTesting",
  "DendroTestSupport",
]
func optimization(of module: String) -> [SwiftSetting] {
  guard isForTests else { return [] }
  return [
    .unsafeFlags(
      hotModules.contains(module) ? ["-assert-config", "Debug"] + passesLeftOut : ["-Onone"])
  ]
}
/// Passes of the optimizer that take a fifth of its time, left out in the short run of the tests.
let passesLeftOut =
  isFullRun
  ? []
  : [
    "closure-specialize", "function-signature-opts", "loop-invariant-code-motion", "bcopts",
  ].flatMap { ["-Xllvm", "-sil-disable-pass=\($0)"] }

/// `tools/test` sets it: the tests start `dendro` five thousand times, and with a static standard library and Foundation, at
/// a fixed address, it starts in half the time. A test would be linked with the flags of an executable that it depends on. So
/// with it no test depends on `dendro`; `swift build --build-tests` builds it all the same.
let isCommandStatic = Context.environment["DENDRO_TEST_STATIC"] != nil
let command: [Target.Dependency] = isCommandStatic ? [] : ["DendroCommand"]
let commandLinking: [LinkerSetting] =
  isCommandStatic
  ? [.unsafeFlags(["-static-stdlib", "-use-ld=lld", "-Xclang-linker", "-no-pie"])]
    + [
      "FoundationInternationalization", "CoreFoundation", "_FoundationICU", "_FoundationCShims",
      "_FoundationCollections", "stdc++",
    ].map { .linkedLibrary($0) } : []

/// The C library, for all tests and tools.
let platform: [Target.Dependency] = ["DendroPlatform"]

/// A part of what ships.
func library(
  _ name: String, _ dependencies: Target.Dependency..., at path: String? = nil,
  resources: [Resource]? = nil
) -> Target {
  .target(
    name: name, dependencies: dependencies, path: path, resources: resources,
    swiftSettings: fuzzedSettings + optimization(of: name))
}
/// What several tests share. The names begin with Dendro: a package that uses this one may have targets
/// called TestSupport.
func support(_ name: String, _ dependencies: Target.Dependency...) -> Target {
  let path = "Tests/\(name)"
  return .target(
    name: name, dependencies: dependencies + platform, path: path,
    swiftSettings: settings + optimization(of: name))
}
func tool(
  _ name: String, _ dependencies: Target.Dependency..., at path: String, exclude: [String] = [],
  define: [SwiftSetting] = [], linking: [LinkerSetting] = []
) -> Target {
  .executableTarget(
    name: name, dependencies: dependencies + platform, path: path, exclude: exclude,
    swiftSettings: settings + define + optimization(of: name), linkerSettings: linking)
}
/// - Parameter starting: the executables that the tests run as processes.
func tests(
  _ name: String, _ dependencies: Target.Dependency..., starting: [Target.Dependency] = [],
  exclude: [String] = []
) -> Target {
  .testTarget(
    name: name, dependencies: dependencies + starting + platform, exclude: exclude,
    swiftSettings: settings + optimization(of: name))
}

let package = Package(
  name: "dendro",
  // Linux has none. Never compiled on a Mac: what the standard library's mutexes need there.
  platforms: [.macOS(.v15)],
  products: [
    .library(name: "Dendro", targets: ["Dendro"]),
    .library(name: "DendroTesting", targets: ["DendroTesting"]),
    .library(name: "DendroServer", targets: ["DendroServer"]),
    .library(name: "DendroRules", targets: ["DendroRules"]),
    .library(name: "DendroSync", targets: ["DendroSync"]),
    .library(name: "DendroCluster", targets: ["DendroCluster"]),
    .executable(name: "dendro", targets: ["DendroCommand"]),
    .executable(name: "crashlab", targets: ["DendroCrashLab"]),
    .executable(name: "dendro-bench", targets: ["DendroBench"]),
    .executable(name: "dendro-shopping", targets: ["DendroShopping"]),
  ],
  targets: [
    .systemLibrary(
      name: "CDendroLZ4", pkgConfig: "liblz4", providers: [.apt(["liblz4-dev"]), .brew(["lz4"])]),
    .systemLibrary(
      name: "CDendroXXHash", pkgConfig: "libxxhash",
      providers: [.apt(["libxxhash-dev"]), .brew(["xxhash"])]),
    .systemLibrary(
      name: "CDendroMicroHTTPD", pkgConfig: "libmicrohttpd",
      providers: [.apt(["libmicrohttpd-dev"]), .brew(["libmicrohttpd"])]),
    .systemLibrary(
      name: "CDendroEdit", pkgConfig: "libedit",
      providers: [.apt(["libedit-dev"]), .brew(["libedit"])]),
    .systemLibrary(
      name: "CDendroCrypto", pkgConfig: "libcrypto",
      providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    .systemLibrary(name: "CDendroCurl"),
    .systemLibrary(name: "CDendroProcessor"),
    // Without pkg-config, which would have the library linked: it is opened when it is needed.
    .systemLibrary(name: "CDendroPQ", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
    .systemLibrary(name: "CDendroWSLay", providers: [.apt(["libwslay-dev"])]),
    library("DendroPlatform"),
    library("DendroTree", "CDendroProcessor"),
    library("DendroStorage", "DendroPlatform", "CDendroLZ4", "CDendroXXHash"),
    library(
      "DendroEngine", "CDendroProcessor", "DendroTree", "DendroStorage", "DendroPlatform"),
    library("Dendro", "DendroEngine", "DendroPlatform"),
    library("DendroRules", "DendroTree"),
    library("DendroProtocol", "DendroTree", "DendroRules", "CDendroCrypto"),
    library(
      "DendroServer", "Dendro", "DendroProtocol", "DendroRules", "DendroEngine", "DendroStorage",
      "DendroTree", "DendroPlatform", "CDendroMicroHTTPD", "CDendroWSLay", "CDendroCrypto",
      "CDendroCurl",
      resources: ["viewer.html", "viewer.css", "viewer.js", "rules.css", "rules.js"].map {
        .embedInCode("Viewer/\($0)")
      }),
    library(
      "DendroSync", "Dendro", "DendroProtocol", "DendroEngine", "DendroTree", "DendroPlatform",
      "CDendroWSLay", "CDendroCrypto"),
    library(
      "DendroCluster", "Dendro", "DendroEngine", "DendroStorage", "DendroTree", "DendroPlatform",
      "CDendroPQ", "CDendroCrypto"),
    .target(
      name: "DendroTesting",
      dependencies: ["DendroStorage", "DendroEngine", "Dendro", "DendroPlatform"],
      swiftSettings: settings + optimization(of: "DendroTesting")),

    library(
      "DendroCommandLine", "CDendroEdit", "DendroServer", "DendroCluster", "DendroProtocol",
      "DendroRules", "Dendro", "DendroEngine", "DendroStorage", "DendroTree", "DendroPlatform",
      at: "tools/dendro/DendroCommandLine"),
    tool(
      "DendroCommand", "DendroCommandLine", at: "tools/dendro/DendroCommand",
      linking: commandLinking),
    tool(
      "DendroCrashLab", "Dendro", "DendroSync", "DendroEngine", "DendroStorage", "DendroTesting",
      "DendroTestSupport", "DendroCrashHarness", "DendroFuzzTargets", at: "tools/crashlab",
      define: isFuzzing ? [.define("DENDRO_FUZZ")] : [], linking: labLinking),
    tool("DendroShopping", "Dendro", "DendroSync", at: "tools/shopping"),
    .target(name: "CDendroLevelDBLog", path: "tools/CDendroLevelDBLog"),
    tool(
      "DendroBench", "Dendro", "DendroSync", "DendroCluster", "DendroRules", "DendroTesting",
      "DendroTestSupport", "DendroTree", "CDendroLevelDBLog",
      at: "tools/bench", exclude: ["peer", "Peers/pyrebase_peer.py"]),

    support("DendroTestSupport", "DendroTree", "DendroStorage", "DendroEngine", "DendroTesting"),
    support(
      "DendroCrashHarness", "Dendro", "DendroEngine", "DendroStorage", "DendroTree",
      "DendroTesting", "DendroTestSupport"),
    support(
      "DendroFuzzTargets", "Dendro", "DendroProtocol", "DendroRules", "DendroEngine",
      "DendroStorage", "DendroTree", "DendroTesting", "DendroCommandLine", "DendroTestSupport",
      "DendroCrashHarness",
      "CDendroLZ4"),
    tests(
      "DendroSyncTests", "DendroSync", "Dendro", "DendroServer", "DendroProtocol", "DendroEngine",
      "DendroStorage", "DendroTree", "DendroTesting", "DendroTestSupport"),
    tests(
      "DendroClusterTests", "DendroCluster", "Dendro", "DendroEngine",
      "DendroStorage", "DendroTree", "DendroTesting", "DendroTestSupport",
      starting: command),
    tests("DendroTreeTests", "DendroTree", "DendroTestSupport"),
    tests("DendroStorageTests", "DendroStorage", "DendroTesting", "DendroTestSupport"),
    tests(
      "DendroEngineTests", "DendroEngine", "DendroStorage", "DendroTree", "DendroTesting",
      "DendroTestSupport"),
    tests("DendroTests", "Dendro", "DendroTesting", "DendroTestSupport", exclude: ["Fixtures"]),
    tests(
      "SimulationTests", "Dendro", "DendroEngine", "DendroStorage", "DendroTree", "DendroTesting",
      "DendroTestSupport", "DendroCrashHarness"),
    tests(
      "FixtureTests", "Dendro", "DendroEngine", "DendroStorage", "DendroTree", "DendroTesting",
      "DendroTestSupport", "DendroCrashHarness", "DendroFuzzTargets", "DendroCommandLine"),
    tests(
      "CommandTests", "DendroCommandLine", "DendroEngine", "DendroStorage", "DendroTree",
      "DendroTesting", "DendroTestSupport", starting: command),
    tests("CrashTests", "Dendro", "DendroCrashLab", "DendroTestSupport", starting: command),
    tests("SanitizerTests"),
    tests(
      "DendroServerTests", "DendroServer", "DendroCluster", "DendroProtocol",
      "Dendro",
      "DendroEngine", "DendroStorage", "DendroTree", "DendroTesting", "DendroTestSupport",
      "CDendroCrypto",
      "CDendroMicroHTTPD", starting: command),
    tests(
      "DendroProtocolTests", "DendroProtocol", "DendroTesting", "DendroTree", "DendroTestSupport",
      exclude: ["Fixtures"]),
    tests("DendroRulesTests", "DendroRules", "DendroTestSupport"),
  ],
  swiftLanguageModes: [.v6]
)
