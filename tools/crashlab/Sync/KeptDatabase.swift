import Dendro
import DendroSync
import Foundation
import Synchronization

/// A process whose settings are those of the whole process: `kept-database STEP…`.
///
/// | step | |
/// | --- | --- |
/// | `enable` | enables `DendroSync` |
/// | `database=URL`, `database` | takes the database of this URL, or the default one |
/// | `persist` | sets `isPersistenceEnabled` |
/// | `emulator=PORT` | names an emulator of this machine |
/// | `where` | says the URL of the root, and `directory PATH` or `memory` |
/// | `write=PATH` | sets what is at the path to 1, and does not wait |
/// | `show=PATH` | says `shows PATH VALUE`, with what a listener sees first, or `nothing` |
/// | `synchronize`, `send` | waits for the disk, or for the server and says `sent` |
/// | `stay` | says `stays`, and does nothing until it is killed |
///
/// Otherwise it closes the database after the last step, and ends.
enum KeptDatabase {
  static let subcommand = "kept-database"

  static func run(_ steps: [String]) async -> Int32 {
    do {
      var database: Database?
      for step in steps {
        let words = step.split(separator: "=", maxSplits: 1).map { String($0) }
        let argument = words.count > 1 ? words[1] : nil
        switch (words.first, argument) {
        case ("enable", _): DendroSync.enable()
        case ("database", let url?): database = Database.database(url: url)
        case ("database", nil): database = Database.database()
        default:
          guard let database else { return 64 }
          try await take(words[0], argument ?? "", database)
        }
      }
      try await database?.close()
      return 0
    } catch {
      say("error \(error)")
      return 1
    }
  }

  private static func take(
    _ step: String, _ argument: String, _ database: Database
  ) async throws {
    switch step {
    case "persist": database.isPersistenceEnabled = true
    case "emulator": database.useEmulator(withHost: "127.0.0.1", port: Int(argument) ?? 0)
    case "where":
      say(database.directory.map { "directory \($0)" } ?? "memory")
      say("url \(database.reference().url)")
    case "write": database.reference(withPath: argument).withoutWaiting { $0.setValue(1) }
    case "show":
      let seen = Mutex("nothing")
      database.reference(withPath: argument).observe(.value) { snapshot in
        seen.withLock { $0 = "\(snapshot.value ?? "null")" }
      }
      await database.waitForPendingEvents()
      say("shows \(argument) \(seen.withLock { $0 })")
    case "synchronize": try await database.synchronize()
    case "send":
      try await database.waitForPendingWrites()
      say("sent")
    case "stay":
      say("stays")
      while true { try await Task.sleep(for: .seconds(60)) }
    default: say("error there is no step \(step)")
    }
  }

  private static func say(_ line: String) {
    // One call, so that a line is there as a whole or not at all.
    try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
  }
}
