import Dendro
import DendroSync
import Foundation

/// A shopping list that several terminals share, also while some of them are offline: `tools/run demo-sync` in each.
///
/// `dendro-shopping [URL [DIRECTORY]]`: with a directory the list, and what the server has not answered, are kept there.
@main
struct Shopping {
  static func main() async {
    do {
      try await run()
    } catch {
      FileHandle.standardError.write(Data("dendro-shopping: \(error)\n".utf8))
      exit(1)
    }
  }

  private static func run() async throws {
    DendroSync.enable()
    // Says why there is no connection.
    Database.setLoggingEnabled(true)
    let words = CommandLine.arguments.dropFirst()
    let url = words.first ?? "http://127.0.0.1:9000?ns=shopping"
    let database =
      if words.count > 1, let directory = words.last {
        try await Database.open(at: directory, syncingWith: url)
      } else {
        Database.database(url: url)
      }
    let list = database.reference(withPath: "list")

    database.reference(withPath: ".info/connected").observe(.value) { snapshot in
      say(snapshot.value as? Bool == true ? "-- connected" : "-- not connected")
    }
    list.observe(.value) { snapshot in
      let items = snapshot.map { item in
        let isBought = item.childSnapshot(forPath: "bought").value as? Bool == true
        return "\(isBought ? "✓ " : "")\(item.childSnapshot(forPath: "name").value ?? "")"
      }
      say(items.isEmpty ? "The list is empty." : "To buy: " + items.joined(separator: ", "))
    }

    say("add THING, buy THING, clear, offline, online, quit")
    for await line in lines {
      let words = line.split(separator: " ", maxSplits: 1)
      let thing = words.count > 1 ? String(words[1]) : ""
      switch words.first {
      case "add" where !thing.isEmpty:
        list.withoutWaiting { $0.childByAutoId().setValue(["name": thing]) }
      case "buy" where !thing.isEmpty:
        guard let items = try? await list.getData() else {
          say("The list is not known yet.")
          continue
        }
        for item in items where item.childSnapshot(forPath: "name").value as? String == thing {
          item.ref.withoutWaiting { $0.child("bought").setValue(true) }
        }
      case "clear": list.withoutWaiting { $0.removeValue() }
      case "offline": database.goOffline()
      case "online": database.goOnline()
      case "quit": try await leave(database)
      case nil: break
      default: say("add THING, buy THING, clear, offline, online, quit")
      }
    }
    try await leave(database)
  }

  /// What the user types. It is waited for on another thread, since the blocks of the listeners are called on that of `main`.
  private static var lines: AsyncStream<String> {
    AsyncStream { continuation in
      Thread.detachNewThread {
        while let line = readLine() { continuation.yield(line) }
        continuation.finish()
      }
    }
  }

  /// Shows a line at once, also if the output is no terminal.
  private static func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }

  /// Goes online, waits until the server has accepted or refused every write, and ends the program.
  private static func leave(_ database: Database) async throws -> Never {
    say("Waiting for the server. Ctrl-C gives up what it does not have.")
    database.goOnline()
    try await database.waitForPendingWrites()
    await database.waitForPendingEvents()
    try await database.close()
    exit(0)
  }
}
