import DendroStorage
import DendroTesting
import Foundation
import Testing

/// The log's bytes are a format: the same calls give the same ones, whatever the code between makes of them.
@Suite("Golden logs")
struct GoldenLogTests {
  private static let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Fixtures/GoldenLogs.txt")

  /// The line of each script. Written anew if `DENDRO_WRITE_GOLDEN_LOGS` is set, which only a new format version
  /// may ask for.
  private static let recorded: [String: String] = {
    let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    var lines: [String: String] = [:]
    for line in text.split(separator: "\n") {
      lines[String(line.prefix { $0 != ":" })] = String(line)
    }
    return lines
  }()

  static let engineSeeds = UInt64(1)...24
  static let databaseSeeds = UInt64(1)...16

  @Test("writes of the engine, in batches: every kind, with server values", arguments: engineSeeds)
  func engine(seed: UInt64) throws {
    let disk = SimulatedDisk(seed: seed)
    try EngineScript(seed: seed).run(on: disk)
    try check("engine \(seed)", disk)
  }

  @Test("calls of the database, one at a time: every form of a write", arguments: databaseSeeds)
  func database(seed: UInt64) async throws {
    let disk = SimulatedDisk(seed: seed)
    try await DatabaseScript(seed: seed).run(on: disk)
    try check("database \(seed)", disk)
  }

  private func check(_ name: String, _ disk: SimulatedDisk) throws {
    let line = "\(name): \(try Self.log(on: disk))"
    if ProcessInfo.processInfo.environment["DENDRO_WRITE_GOLDEN_LOGS"] != nil {
      return try Self.append(line)
    }
    #expect(Self.recorded[name] == line)
  }

  /// The number of writes, their bytes, and a checksum of all records: where they begin, when, and what they hold.
  private static func log(on disk: SimulatedDisk) throws -> String {
    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readOnly)
    defer { directory.close() }
    var checksum = ContentHash64()
    var writeCount = 0
    var byteCount = 0
    _ = try LogReader.read(directory) { record, payload in
      guard record.kind == .writes else { return }
      for number in [record.firstLSN.rawValue, UInt64(record.count), UInt64(record.baseTime)] {
        withUnsafeBytes(of: number.littleEndian) { checksum.combine($0) }
      }
      checksum.combine(payload)
      writeCount += record.count
      byteCount += payload.count
    }
    return "\(writeCount) writes, \(byteCount) bytes, \(String(checksum.finish(), radix: 16))"
  }

  private static func append(_ line: String) throws {
    if !FileManager.default.fileExists(atPath: file.path) { try Data().write(to: file) }
    let handle = try FileHandle(forWritingTo: file)
    defer { try? handle.close() }
    try handle.seekToEnd()
    try handle.write(contentsOf: Data((line + "\n").utf8))
  }
}
