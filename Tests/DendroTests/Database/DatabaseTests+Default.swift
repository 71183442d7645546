import Dendro
import Foundation
import DendroTestSupport
import Testing

extension DatabaseTests {
  @Test("a file URL does for a path, in calls with and without await")
  func fileURLs() async throws {
    let url = URL(fileURLWithPath: directory.path)
    let copy = URL(fileURLWithPath: directory.path + "/copy")
    let database = try await Database.open(at: url)
    try await database.reference().child("a").setValue(1)
    try plainly {
      try database.synchronize()
      try database.backup(to: copy)
    }
    try await database.close()
    for place in [url, copy] {
      let again: Database = try plainly { try Database.open(at: place) }
      #expect(try await again.reference().child("a").getData().int == 1)
      try await again.close()
    }
  }

  @Test(
    "the default instance: one object, in the user's data directory; what cannot be opened says so")
  func defaultInstance() async throws {
    let name = ProcessInfo.processInfo.processName
    setenv("XDG_DATA_HOME", directory.path + "/made/data", 1)
    defer { unsetenv("XDG_DATA_HOME") }
    let database = Database.database()
    #expect(Database.database() === database)
    try await database.reference().child("a").setValue(1)
    try await database.close()
    #expect(FileManager.default.fileExists(atPath: directory.path + "/made/data/" + name))
    // After it was closed the next call opens again.
    let again = Database.database()
    #expect(again !== database)
    #expect(try await again.reference().child("a").getData().int == 1)
    try await again.close()

    // A URL of Firebase's is the name of a directory beside it.
    let url = "https://Blog.europe-west1.example.app"
    let named = Database.database(url: url)
    #expect(Database.database(url: "blog.europe-west1.example.app/") === named)
    #expect(Database.database(url: "https://other.example.app") !== named)
    #expect(named.reference().child("a").url == "https://blog.europe-west1.example.app/a")
    #expect(named.reference(fromURL: url + "/a") == named.reference().child("a"))
    try await named.reference().setValue(2)
    try await named.close()
    try await Database.database(url: "https://other.example.app").close()
    let files = try FileManager.default.contentsOfDirectory(
      atPath: directory.path + "/made/data")
    #expect(
      Set(files) == [
        name, name + "@blog.europe-west1.example.app", name + "@other.example.app",
      ])

    let file = directory.path + "/file"
    #expect(FileManager.default.createFile(atPath: file, contents: Data()))
    setenv("XDG_DATA_HOME", file, 1)
    let failed = Database.database()
    let ref = failed.reference().child("a")
    let error = await failure { try await ref.setValue(1) }
    #expect(error?.code == .inputOutput)
    #expect(await failure { _ = try await ref.getData() } == error)
    #expect(await failure { try await failed.synchronize() } == error)
    let alsoFailed = Database.database(url: url).reference()
    #expect(await failure { try await alsoFailed.setValue(1) }?.code == .inputOutput)
    let recorder = Recorder(failed)
    ref.observe(
      .value, with: { _ in recorder.note("event") },
      withCancel: { error in
        recorder.note("\(((error as? DatabaseError)?.code)!.rawValue)")
      })
    #expect(await recorder.take() == ["207"])
    #expect(failed.statistics.writeCount == 0 && failed.recoveryReport.lastWrite == 0)
  }
}
