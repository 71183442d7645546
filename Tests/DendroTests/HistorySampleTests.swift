import Dendro
import Foundation
import Testing

/// The code of the article «History», as it stands there.
@Suite("The samples about history")
struct HistorySampleTests {
  final class Indexer {
    var lines: [String] = []
    func index(_ path: String, _ title: String?) { lines.append("\(path)=\(title ?? "-")") }
    func reindex(_ ref: DatabaseReference) { lines.append("again \(ref.url)") }
  }

  @Test("how far back, states and changes")
  func samples() async throws {
    let temporary = TemporaryDirectory()
    let directory = temporary.path

    var options = DatabaseOptions()
    options.history = .keep(for: .seconds(30 * 24 * 3600))
    let database = try await Database.open(at: directory, options: options)

    let ref = database.reference(withPath: "posts/rings")
    try await ref.setValue(["title": "Tree rings"])
    let published = database.statistics.lastWrite
    try await ref.updateChildValues(["title": "Rings of a tree"])
    try await ref.removeValue()

    let range = try await database.historyRange()
    print("from write \(range.oldest) to write \(range.newest)")
    #expect(range.oldest == 0 && range.newest == 3)

    let post = database.reference(withPath: "posts/rings")
    let before = try await post.snapshot(at: published)  // after that write
    let yesterday = try await post.snapshot(at: Date() - 24 * 3600)  // as of that time
    #expect(before["title"].string == "Tree rings")
    #expect(!yesterday.exists())

    let indexer = Indexer()
    func index(_ path: String, _ title: String?) { indexer.index(path, title) }
    func reindex(_ ref: DatabaseReference) { indexer.reindex(ref) }
    var last: LSN = 0
    for try await change in database.reference(withPath: "posts").changes(since: last) {
      switch change.operation {
      case .set(let data): index(change.path, data["title"].string)
      case .remove: index(change.path, nil)
      case .update(let entries): for entry in entries { reindex(entry.ref) }
      case .increment, .setPriority: break
      }
      last = change.lsn  // to be kept where the index is
      if last == 3 { break }
    }
    #expect(
      indexer.lines == [
        "/posts/rings=Tree rings", "again dendro://localhost/posts/rings/title", "/posts/rings=-",
      ])

    try await database.reference(withPath: "users/ada").removeValue()
    try await database.purgeHistory()

    last = 0
    func handle(_ change: DatabaseChange) {}
    func rebuild(_ snapshot: DataSnapshot) { #expect(!snapshot.exists()) }
    do {
      for try await change in database.changes(since: last) { handle(change) }
    } catch let error as DatabaseError where error.code == .outOfHistory {
      let now = try await database.historyRange().newest
      rebuild(try await database.reference().snapshot(at: now))
      last = now
    }
    #expect(last == 3)
    try await database.close()
  }
}
