import Dendro
import Foundation
import Testing

@Suite("History.md")
struct HistorySamples {
  @Test("how far back, states and changes")
  func samples() async throws {
    let temporary = TemporaryDirectory()
    let directory = temporary.path

    // sample
    var options = DatabaseOptions()
    options.history = .keep(for: .seconds(30 * 24 * 3600))
    let database = try await Database.open(at: directory, options: options)
    // end

    let ref = database.reference(withPath: "posts/rings")
    try await ref.setValue(["title": "Tree rings"])
    let published = database.statistics.lastWrite
    try await ref.updateChildValues(["title": "Rings of a tree"])
    try await ref.removeValue()

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

    // In a task of its own, which is cancelled.
    let lines = try await Task { try await Self.follow(database) }.value
    #expect(
      lines == [
        "/posts/rings=Tree rings", "again dendro://localhost/posts/rings/title", "/posts/rings=-",
      ])
    try await Self.purge(database)
    #expect(try await Self.beginAnew(database) == 3)
    try await database.close()
  }

  /// Ends its own task after the third change.
  private static func follow(_ database: Database) async throws -> [String] {
    var lines: [String] = []
    func note(_ line: String) {
      lines.append(line)
      if lines.count == 3 { withUnsafeCurrentTask { $0?.cancel() } }
    }
    func index(_ path: String, _ title: String?) { note("\(path)=\(title ?? "-")") }
    func reindex(_ ref: DatabaseReference) { note("again \(ref.url)") }
    var last: LSN = 0
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

  private static func beginAnew(_ database: Database) async throws -> LSN {
    var last: LSN = 0
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
    return last
  }

  private static func purge(_ database: Database) async throws {
    // sample
    try await database.reference(withPath: "users/ada").removeValue()
    try await database.purgeHistory()
    // end
  }
}
