import Dendro
import Foundation
import Testing

@Suite("History.md")
struct HistorySamples {
  @Test("how far back, and states of the past")
  func states() async throws {
    let temporary = TemporaryDirectory()
    let directory = temporary.path
    // sample
    var options = DatabaseOptions()
    options.history = .keep(for: .seconds(30 * 24 * 3600))
    let database = try await Database.open(at: directory, options: options)
    // end
    let published = try await Self.fill(database)
    // sample
    let range = try await database.historyRange()
    print("from write \(range.oldest) to write \(range.newest)")
    // end
    #expect(range.oldest == 0 && range.newest == 3)
    // sample
    let post = database.reference(withPath: "posts/rings")
    let before = try await post.snapshot(at: published)  // after that write
    let yesterday = try await post.snapshot(at: Date() - 24 * 3600)  // as of that time
    // end
    #expect(before["title"].string == "Tree rings")
    #expect(!yesterday.exists())
    try await database.close()
  }

  private static func follow(_ database: Database) async throws -> [String] {
    var lines: [String] = []
    func index(_ path: String, _ title: String?) { lines.append("\(path)=\(title ?? "-")") }
    func reindex(_ ref: DatabaseReference) { lines.append("again \(ref.url)") }
    var last: Database.LSN = 0
    // sample
    for try await change in database.reference(withPath: "posts").changes(since: last) {
      switch change.operation {
      case .set(let data): index(change.path, data["title"].string)
      case .remove: index(change.path, nil)
      case .update(let entries): for entry in entries { reindex(entry.ref) }
      case .increment, .setPriority: break
      }
      last = change.lsn  // to be kept where the index is
    }
    // end
    #expect(last == 3)
    return lines
  }

  @Test("changes, one that comes too late, and purging")
  func changes() async throws {
    let directory = TemporaryDirectory()
    let writer: Database = try await Database.open(at: directory.path)
    _ = try await Self.fill(writer)
    try await writer.close()
    // Opened for reading only it ends behind the last write.
    let reader: Database = try await Database.open(readOnly: directory.path)
    let lines = try await Self.follow(reader)
    #expect(
      lines == [
        "/posts/rings=Tree rings", "again dendro://localhost/posts/rings/title", "/posts/rings=-",
      ])
    try await reader.close()

    let database: Database = try await Database.open(at: directory.path)
    // Not that much was written yet.
    var last: Database.LSN = 99
    func handle(_ change: DatabaseChange) {}
    func rebuild(_ snapshot: DataSnapshot) { #expect(!snapshot.exists()) }
    // sample
    do {
      for try await change in database.changes(since: last) { handle(change) }
    } catch let error as DatabaseError where error.code == .outOfHistory {
      let now = try await database.historyRange().newest
      rebuild(try await database.reference().snapshot(at: now))
      last = now
    }
    // end
    #expect(last == 3)
    let source = directory.path
    let folder = TemporaryDirectory()
    let (place, restored) = (folder.path + "/archive", folder.path + "/restored")
    let archiving = Task {
      // sample
      let archive = try DatabaseArchive(of: source, at: place)
      while !Task.isCancelled {
        try await archive.extend()
        try await Task.sleep(for: .seconds(1))
      }
      // end
    }
    var isBegun = false
    while !isBegun {
      await Task.yield()
      if let begun: Database = try? await Database.open(readOnly: place) {
        isBegun = true
        try await begun.close()
      }
    }
    archiving.cancel()
    _ = await archiving.result
    do {
      // sample
      let archive = try await Database.open(readOnly: place)
      try await archive.restore(at: Date() - 3600, to: restored)
      // end
      try await archive.close()
      let then: Database = try await Database.open(at: restored)
      #expect(try await then.historyRange().newest == 0)
      try await then.close()
    }
    // sample
    try await database.reference(withPath: "users/ada").removeValue()
    try await database.purgeHistory()
    // end
    #expect(try await database.historyRange().oldest == 3)
    try await database.close()
  }

  /// - Returns: the first of three writes.
  private static func fill(_ database: Database) async throws -> Database.LSN {
    let ref = database.reference(withPath: "posts/rings")
    try await ref.setValue(["title": "Tree rings"])
    let published = database.statistics.lastWrite
    try await ref.updateChildValues(["title": "Rings of a tree"])
    try await ref.removeValue()
    return published
  }
}
