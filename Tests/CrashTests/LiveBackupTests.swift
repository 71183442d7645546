import DendroTestSupport
import Foundation
import Testing

/// Backups and archives beside four writers that turn segments, take checkpoints, and are killed.
@Suite struct LiveBackupTests {
  /// Each backup is the tree of one write, the same that the archive's log has for it.
  @Test(.timeLimit(.minutes(30))) func fourWriters() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("dendro-backups-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let place = { (name: String) in folder.appendingPathComponent(name).path }
    try call(["set", place("db"), "/begun", "true"])

    let archiver = Process()
    archiver.executableURL = try LabRun.executable("dendro")
    archiver.arguments = ["archive", place("db"), "--to", place("archive"), "--interval", "1"]
    archiver.standardOutput = FileHandle.nullDevice
    try archiver.run()
    defer { if archiver.isRunning { kill(archiver.processIdentifier, SIGKILL) } }
    // From then on the writers keep the log for it.
    while !FileManager.default.fileExists(atPath: place("archive/dendro.archive"))
      || FileManager.default.fileExists(atPath: place("archive/backup.unfinished"))
    {
      usleep(1000)
    }

    var backups: [(name: String, lsn: Int)] = []
    for cycle in 0..<Scale.ofProcesses(20) {
      let writer = Process()
      writer.executableURL = try LabRun.executable("crashlab")
      writer.arguments = [
        "killed-writer", "--directory", place("db"), "--seed", "11", "--writers", "4", "--draws",
        "\(cycle * 2)",
      ]
      let output = Pipe()
      writer.standardOutput = output
      try writer.run()
      var count = 0
      while count < 100 {
        let part = output.fileHandleForReading.availableData
        if part.isEmpty { break }
        count += part.count { $0 == UInt8(ascii: "\n") }
      }
      // Its pipe is read on, so that it goes on writing.
      output.fileHandleForReading.readabilityHandler = { _ = $0.availableData }
      let name = place("copy\(cycle)")
      let backup = try call(["backup", place("db"), name, "--json"])
      backups.append((name, try #require(backup["lsn"] as? Int)))
      kill(writer.processIdentifier, SIGKILL)
      writer.waitUntilExit()
      output.fileHandleForReading.readabilityHandler = nil
    }
    archiver.terminate()
    archiver.waitUntilExit()
    #expect(archiver.terminationStatus == 143)

    #expect(try hash(place("archive")) == hash(place("db")))
    for (index, backup) in backups.enumerated() {
      let expected = try hash(place("archive"), at: backup.lsn)
      #expect(try hash(backup.name) == expected, "\(backup)")
      let restored = place("restored\(index)")
      try call(["restore", place("archive"), restored, "--at", "\(backup.lsn)", "--json"])
      #expect(try hash(restored) == expected, "\(backup)")
    }
  }

  private func hash(_ directory: String, at lsn: Int? = nil) throws -> String {
    let result = try call(
      ["hash", directory, "--json"] + (lsn.map { ["--at", "\($0)"] } ?? []))
    return try #require(result["hash"] as? String)
  }

  /// Runs a verb that has to succeed.
  @discardableResult
  private func call(_ words: [String], sourceLocation: SourceLocation = #_sourceLocation) throws
    -> [String: Any]
  {
    let (status, output, errors) = try LabRun.run(LabRun.executable("dendro"), words)
    #expect(
      status == 0, "\(words.joined(separator: " ")): \(errors)", sourceLocation: sourceLocation)
    return (try? JSONSerialization.jsonObject(with: output)) as? [String: Any] ?? [:]
  }
}
