import DendroCrashHarness
import Foundation

/// `crashlab golden DIRECTORY`: writes the golden databases of today's format, each as a directory and
/// a text beside it with what must be found in it.
enum GoldenCommand {
  static func run(_ words: [String]) -> Int32 {
    guard words.count == 1, let directory = words.first, !directory.hasPrefix("-") else {
      CrashLab.usage("golden wants a directory")
    }
    do {
      for database in try GoldenDatabases.all() {
        let path = "\(directory)/\(database.facts.format)-\(database.name)"
        try write(database, to: path)
        print("\(path): \(database.files.count) files, up to write \(database.facts.lastLSN)")
      }
      return 0
    } catch {
      FileHandle.standardError.write(
        Data("crashlab: \(directory): \(error.localizedDescription)\n".utf8))
      return 69
    }
  }

  private static func write(_ database: GoldenDatabase, to path: String) throws {
    let manager = FileManager.default
    if manager.fileExists(atPath: path) {
      // What was released is read for ever as it was written then.
      guard database.facts.format == 0 else {
        return print("\(path) is there already, and stays as it is")
      }
      try manager.removeItem(atPath: path)
    }
    try manager.createDirectory(atPath: path, withIntermediateDirectories: true)
    for file in database.files {
      try Data(file.bytes).write(to: URL(fileURLWithPath: "\(path)/\(file.name)"))
    }
    try Data(database.facts.text.utf8).write(to: URL(fileURLWithPath: path + ".txt"))
  }
}
