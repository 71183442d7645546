import Dendro
import DendroTesting
import Testing

// sample
/// Signs users up, and then welcomes them.
struct SignUps {
  let database: Database
  let welcome: (String) -> Void

  func add(_ name: String) async throws {
    let user = database.reference(withPath: "users").child(name)
    try await user.setValue(["joined": ServerValue.timestamp()])
    welcome(name)
  }

  func names() async throws -> [String] {
    try await database.reference(withPath: "users").getData().map(\.key)
  }
}
// end

@Suite("TestingYourApp.md")
struct TestingYourAppSamples {
  // sample
  @Test func everyWelcomedUserIsSignedUp() async throws {
    try await CrashTest(seed: 1).run { disk in
      let database = try Database.open(at: "/users", on: disk)
      let signUps = SignUps(database: database) { disk.acknowledge($0) }
      for name in ["ada", "grace", "edsger"] { try await signUps.add(name) }
      try await database.close()
    } check: { crash in
      let database = try Database.open(at: "/users", on: crash.disk())
      let names = try await SignUps(database: database) { _ in }.names()
      for name in crash.acknowledged { try #require(names.contains(name), "\(name) is lost") }
      try await database.close()
    }
  }
  // end

  // sample
  /// Welcomes users while they are being signed up.
  struct HastySignUps {
    let database: Database
    let welcome: (String) -> Void

    func add(_ name: String) async throws {
      let user = database.reference(withPath: "users").child(name)
      async let saved = user.setValue(["joined": ServerValue.timestamp()])
      welcome(name)
      _ = try await saved
    }
  }
  // end

  @Test("the lab finds who is welcomed too early, and says how to see it again")
  func whoeverIsWelcomedTooEarlyIsLost() async throws {
    let program = { (disk: SimulatedDisk) in
      let database = try Database.open(at: "/users", on: disk)
      let signUps = HastySignUps(database: database) { disk.acknowledge($0) }
      for name in ["ada", "grace", "edsger"] { try await signUps.add(name) }
      try await database.close()
    }
    let failure = await #expect(throws: CrashTest.Failure.self) {
      try await CrashTest(seed: 1).run(program, check: Self.findAll)
    }
    let crash = try #require(failure?.crash)
    #expect(crash.acknowledged.first == "ada")
    #expect(crash.seed == 1)
    let text = try #require(failure?.description)
    #expect(text.contains("DENDRO_CRASH=\(crash) swift test"))
    #expect(text.hasSuffix("runs alone: ada is lost"))

    let wanted = try #require(CrashTest.Reproduction("\(crash)"))
    let again = await #expect(throws: CrashTest.Failure.self) {
      try await CrashTest(seed: 99).run(only: wanted, program, check: Self.findAll)
    }
    #expect(again.map { "\($0.crash)" } == "\(crash)")
  }

  private struct Lost: Error, CustomStringConvertible {
    let name: String
    var description: String { "\(name) is lost" }
  }

  private static func findAll(_ crash: Crash) async throws {
    let database = try Database.open(at: "/users", on: crash.disk())
    let names = try await SignUps(database: database) { _ in }.names()
    for name in crash.acknowledged where !names.contains(name) { throw Lost(name: name) }
    try await database.close()
  }

  @Test("a program that runs once")
  func once() async throws {
    // sample
    let disk = SimulatedDisk(seed: 1)
    let database = try Database.open(at: "/users", on: disk)
    try await database.reference(withPath: "users/ada").setValue(true)
    disk.acknowledge("ada")

    for crash in disk.crashes() {
      let found = try Database.open(at: "/users", on: crash.disk())
      let users = try await found.reference(withPath: "users").getData()
      for name in crash.acknowledged where !users.hasChild(name) {
        Issue.record("\(name) is lost after the crash \(crash)")
      }
    }
    // end
  }
}
