import Dendro
import DendroPlatform
import Foundation
import Testing

/// Which directory a path or a URL names, and which ones name none.
@Suite("The path of a directory")
struct DirectoryPathTests {
  static let notFiles = [
    "https://example.org/tmp/db", "http:///tmp/db", "dendro:/tmp/db", "/tmp/db", "db",
    "file://elsewhere/tmp/db",
  ]

  @Test(
    "a URL that names no file of this machine is refused, wherever one is taken",
    arguments: notFiles)
  func notAFile(text: String) async throws {
    let url = try #require(URL(string: text))
    var options = DatabaseOptions()
    options.createsMissing = false
    #expect(
      await failure { _ = try plainly { try Database.open(at: url, options: options) } }?.code
        == .invalidArgument)
    #expect(
      await failure { _ = try await Database.open(at: url, options: options) }?.code
        == .invalidArgument)
    let directory = TemporaryDirectory()
    let database = try await Database.open(at: directory.path)
    #expect(
      await failure { try plainly { try database.backup(to: url) } }?.code == .invalidArgument)
    try await database.close()
  }

  @Test("a file URL names its path, escapes resolved")
  func aFile() async throws {
    let directory = TemporaryDirectory()
    let url = URL(fileURLWithPath: directory.path + "/a b%c", isDirectory: true)
    let database = try await Database.open(at: url)
    try await database.reference().setValue(1)
    let copy = try #require(URL(string: "file://localhost" + directory.path + "/copy%20of"))
    try plainly { try database.backup(to: copy) }
    try await database.close()
    #expect(FileManager.default.fileExists(atPath: directory.path + "/a b%c"))
    #expect(FileManager.default.fileExists(atPath: directory.path + "/copy of"))
  }

  @Test("no path is refused by every form of the calls", arguments: ["", "a\0b"])
  func noPath(path: String) async throws {
    let directory = TemporaryDirectory()
    let database = try await Database.open(at: directory.path)
    let codes = [
      await failure { _ = try plainly { try Database.open(at: path) } }?.code,
      await failure { _ = try await Database.open(at: path) }?.code,
      await failure { _ = try plainly { try Database.open(readOnly: path) } }?.code,
      await failure { _ = try await Database.open(readOnly: path) }?.code,
      await failure { try plainly { try database.backup(to: path) } }?.code,
      await failure { try await database.backup(to: path) }?.code,
    ]
    #expect(codes == Array(repeating: .invalidArgument, count: 6))
    try await database.close()
  }

  #if os(Linux)
    @Test("if the working directory is gone, a relative path is refused and makes nothing")
    func workingDirectoryGone() async {
      // In a process of its own, whose working directory it is.
      await #expect(processExitsWith: .success) {
        let home = TemporaryDirectory()
        let database = try await Database.open(at: home.path)
        let gone = TemporaryDirectory()
        try FileManager.default.createDirectory(
          atPath: gone.path, withIntermediateDirectories: true)
        #expect(chdir(gone.path) == 0)
        #expect(rmdir(gone.path) == 0)
        let name = "dendro-\(UUID().uuidString)"
        let codes = [
          await failure { _ = try plainly { try Database.open(at: name) } }?.code,
          await failure { _ = try await Database.open(at: name) }?.code,
          await failure { _ = try plainly { try Database.open(readOnly: name) } }?.code,
          await failure { try plainly { try database.backup(to: name) } }?.code,
          await failure { try await database.backup(to: name) }?.code,
        ]
        #expect(codes == Array(repeating: .inputOutput, count: 5))
        #expect(!FileManager.default.fileExists(atPath: "/" + name))
        try await database.close()
      }
    }
  #endif
}
