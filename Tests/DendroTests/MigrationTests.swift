import Dendro
import DendroTesting
import Foundation
import Testing

@Suite("Migrations")
struct MigrationTests {
  private static let steps: [@Sendable (MutableData) throws -> Void] = [
    { data in
      for case let user as MutableData in data["users"].children {
        let parts = (user["name"].string ?? "").split(separator: " ", maxSplits: 1).map(String.init)
        user["name"].value = ["first": parts.first, "last": parts.dropFirst().first]
      }
    },
    { data in data["cache"].value = nil },
    { data in data["users/count"].int = Int(data["users"].childrenCount) },
  ]

  private static let old: Database.Value = [
    "users": ["a": ["name": "Ada Lovelace"], "b": ["name": "Ben"]], "cache": ["x": 1],
  ]
  private static let new: Database.Value = [
    "users": [
      "a": ["name": ["first": "Ada", "last": "Lovelace"]], "b": ["name": ["first": "Ben"]],
      "count": 2,
    ],
    "meta": ["version": 3],
  ]

  @Test("steps run once, in order, wherever the migration has come", arguments: 0...3)
  func steps(done: Int) async throws {
    let database = Database.inMemory()
    try await database.reference().setValue(Self.old)
    #expect(
      try await database.migrate(versionAt: "meta/version", Array(Self.steps.prefix(done))) == 0)
    #expect(try await database.migrate(versionAt: "meta/version", Self.steps) == done)
    #expect(try await database.reference().getData().typedValue == Self.new)
    let last = database.statistics.lastWrite
    #expect(try await database.migrate(versionAt: "meta/version", Self.steps) == 3)
    #expect(database.statistics.lastWrite == last)
  }

  @Test("data of a newer program, and what is no number, are refused and stay as they are")
  func refused() async throws {
    let database = Database.inMemory()
    try await database.reference().setValue(["version": 4, "a": 1])
    let error = await failure { try await database.migrate(versionAt: "version", Self.steps) }
    #expect(error?.code == .unsupportedFormat)
    #expect(
      error?.message
        == "the data at version say that 4 steps were done, and this program knows 3")
    for value in [-1, "x", 1.5, ["a": 1]] as [Database.Value] {
      try await database.reference().setValue(["version": value])
      let error = await failure { try await database.migrate(versionAt: "version", Self.steps) }
      #expect(error?.code == .invalidData, "\(value)")
    }
    #expect(
      await failure { try await database.migrate(versionAt: "a.b", Self.steps) }?.code
        == .invalidPath)
    #expect(
      await failure { try await database.migrate(versionAt: "/", Self.steps) }?.code
        == .invalidArgument)
    // What a step writes where the version stands.
    try await database.reference().setValue(["b": 1])
    #expect(
      await failure {
        try await database.migrate(versionAt: "version", [{ $0["version/x"].int = 1 }])
      }?.code == .invalidData)
    #expect(try await database.reference().getData().typedValue == ["b": 1])
  }

  @Test("a step that throws writes nothing of itself, and those before it stay")
  func throwing() async throws {
    struct Stop: Error {}
    let database = Database.inMemory()
    try await database.reference().setValue(["a": 1])
    await #expect(throws: Stop.self) {
      try await database.migrate(
        versionAt: "version",
        [
          { $0["a"].int = 2 },
          { data in
            data["a"].int = 3
            throw Stop()
          },
        ])
    }
    #expect(try await database.reference().getData().typedValue == ["a": 2, "version": 1])
  }

  @Test("after a crash at any call of the disk, going on ends in the same data")
  func crashes() async throws {
    try await CrashTest(seed: 1).run { disk in
      let database = try Database.open(at: "/app", on: disk)
      try await database.reference().setValue(Self.old)
      disk.acknowledge("old")
      try await database.migrate(versionAt: "meta/version", Self.steps)
      try await database.close()
    } check: { crash in
      guard crash.acknowledged.contains("old") else { return }
      let database = try Database.open(at: "/app", on: crash.disk())
      try await database.migrate(versionAt: "meta/version", Self.steps)
      let data = try await database.reference().getData().typedValue
      try #require(data == Self.new)
      try await database.close()
    }
  }
}
