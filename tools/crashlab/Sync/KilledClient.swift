import Dendro
import DendroSync
import DendroTestSupport
import Foundation
import Synchronization

/// A process with a synced database in a directory, which is killed over and over: `sync-client DIRECTORY URL NAME SEED LIFE`.
///
/// Each write adds one to the count of its life and to one that all share, and leaves a mark with the number of the life and
/// that of the write in it. So a write that the server has made twice, or a part of one, can be told from the marks. It
/// says `try N` before each and `ack N` once the server has answered. Of transactions, each of which adds one, it says
/// `begin`, `commit` and `fail REASON`. It says `wrong TEXT` if a listener sees a part of a write.
///
/// Besides, it listens to queries, in some lives without a listener of everything, and says `wrong TEXT` if the events of their
/// children do not add up to their values.
///
/// After the first line of its input it writes no more, and says `sent` once the server has answered all. The second line
/// names a file with the server's data as JSON: it says `same` once all listeners see what follows from them, or
/// `wrong TEXT` after a minute, and ends.
enum KilledClient {
  static let subcommand = "sync-client"

  static func run(_ arguments: [String]) async -> Int32 {
    guard arguments.count == 5, let seed = UInt64(arguments[3]), let life = Int(arguments[4])
    else { return 64 }
    DendroSync.enable()
    do {
      let database = try await Database.open(at: arguments[0], syncingWith: arguments[1])
      try await Life(database, name: arguments[2], seed: seed, life: life).run()
      return 0
    } catch {
      say("error \(error)")
      return 1
    }
  }

  private static func say(_ line: String) {
    // One call, so that a line is there as a whole or not at all.
    try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
  }

  private final class Life: Sendable {
    private let database: Database
    private let name: String
    private let life: Int
    private let generator: Mutex<SeededGenerator>
    /// The lines of the input, so far.
    private let lines = Mutex<[String]>([])
    /// What the listener of everything has seen last.
    private let seen = Mutex<DataSnapshot?>(nil)
    /// Transactions that have not ended.
    private let runningCount = Atomic<Int>(0)

    init(_ database: Database, name: String, seed: UInt64, life: Int) {
      self.database = database
      self.name = name
      self.life = life
      generator = Mutex(SeededGenerator(seed: seed &+ UInt64(life) &* 7919))
    }

    private func below(_ limit: Int) -> Int { generator.withLock { $0.below(limit) } }

    func run() async throws {
      Thread.detachNewThread { [self] in
        while let line = readLine() { lines.withLock { $0.append(line) } }
      }
      let all = database.reference()
      let first = below(QueryView.queryCount)
      let views = [first, (first + 1 + below(QueryView.queryCount - 1)) % QueryView.queryCount].map
      {
        QueryView($0, in: database, KilledClient.say)
      }
      // Without it, the queries know their children alone.
      let listensToAll = below(3) > 0
      if listensToAll { observeAll() }
      database.goOnline()
      for number in 1...400 where line(1) == nil {
        write(number, all)
        if below(8) == 0 { transact(all.child("transactions")) }
        if below(20) == 0 { below(2) == 0 ? database.goOffline() : database.goOnline() }
        try await Task.sleep(for: .microseconds(below(3000)))
      }
      while line(1) == nil { try await Task.sleep(for: .milliseconds(2)) }
      database.goOnline()
      try await database.waitForPendingWrites()
      while runningCount.load(ordering: .relaxed) > 0 {
        try await Task.sleep(for: .milliseconds(2))
      }
      KilledClient.say("sent")
      while line(2) == nil { try await Task.sleep(for: .milliseconds(2)) }
      try await compare(views, listensToAll, withFileAt: line(2) ?? "")
      try await database.close()
    }

    private func observeAll() {
      database.reference().observe(.value) { [self] state in
        Self.check(state, of: name, in: life)
        seen.withLock { $0 = state }
      }
    }

    /// - Parameter number: counted from 1.
    private func line(_ number: Int) -> String? {
      lines.withLock { $0.count < number ? nil : $0[number - 1] }
    }

    /// Waits until the listeners see what the file holds: those of queries first, so that another one does not help them.
    private func compare(
      _ views: [QueryView], _ listensToAll: Bool, withFileAt path: String
    ) async throws {
      let data = try Data(contentsOf: URL(fileURLWithPath: path))
      let object = try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
      let own = Database.inMemory()
      try await own.reference().setValue(object)
      for view in views {
        let expected = try await view.state(in: own)
        guard try await sees(expected, view.name, { view.state }) else { return }
      }
      if !listensToAll { observeAll() }
      let expected = try Self.json(object)
      let everything = listensToAll ? "everything, from the start," : "everything"
      guard
        try await sees(
          expected, everything, { try Self.json(seen.withLock { $0?.value } ?? NSNull()) })
      else { return }
      KilledClient.say("same")
      try await own.close()
    }

    /// Whether this is seen within a minute.
    ///
    /// - Parameter listener: what it is that sees it, for the line that it says otherwise.
    private func sees(
      _ expected: String, _ listener: String, _ state: () throws -> String
    ) async throws -> Bool {
      let deadline = ContinuousClock.now + .seconds(60)
      while true {
        let seen = try state()
        if seen == expected { return true }
        guard ContinuousClock.now < deadline else {
          KilledClient.say("wrong \(listener) shows \(seen) in place of \(expected)")
          return false
        }
        try await Task.sleep(for: .milliseconds(2))
      }
    }

    private static func json(_ object: Any) throws -> String {
      let data = try JSONSerialization.data(
        withJSONObject: object, options: [.sortedKeys, .fragmentsAllowed])
      return String(decoding: data, as: UTF8.self)
    }

    /// Each write changes a count and leaves a mark, so that a state with one of the two is no state of the server with the
    /// client's own writes.
    ///
    /// Of the client's earlier lives the count may be behind. Their writes may have gone to the server, and not yet to the
    /// disk, when the client was killed: the server makes them, while a write before them still shows its estimate.
    private static func check(_ state: DataSnapshot, of name: String, in life: Int) {
      for counts in state.childSnapshot(forPath: "counts") {
        for count in counts {
          let place = "\(counts.key)/\(count.key)"
          let marks = Int(state.childSnapshot(forPath: "made/\(place)").childrenCount)
          let counted = count.value as? Int ?? 0
          let mayBeBehind = counts.key == name && count.key != "life\(life)"
          if mayBeBehind ? counted > marks : counted != marks {
            KilledClient.say("wrong \(place) counts \(counted) of \(marks)")
          }
        }
      }
    }

    private func transact(_ place: DatabaseReference) {
      KilledClient.say("begin")
      runningCount.add(1, ordering: .relaxed)
      place.runTransactionBlock({ [name] data in
        let own = data.childData(byAppendingPath: name)
        own.value = (own.value as? Int ?? 0) + 1
        return .success(withValue: data)
      }) { [self] error, committed, _ in
        defer { runningCount.subtract(1, ordering: .relaxed) }
        if committed { return KilledClient.say("commit") }
        KilledClient.say("fail \((error as? DatabaseError)?.name ?? "")")
      }
    }

    private func write(_ number: Int, _ all: DatabaseReference) {
      KilledClient.say("try \(number)")
      let one = ServerValue.increment(1)
      let key = String(format: "%03d", number)
      var values: [String: Any] = [
        "counts/\(name)/life\(life)": one, "total": one, "made/\(name)/life\(life)/n\(key)": true,
      ]
      switch below(4) {
      case 0: values["shared/k\(below(12))"] = ["by": name, "number": number]
      case 1: values["shared/k\(below(12))/extra"] = number
      case 2: values["shared/k\(below(12))"] = NSNull()
      default: break
      }
      all.updateChildValues(values) { error, _ in
        if error == nil { KilledClient.say("ack \(number)") }
      }
    }
  }
}
