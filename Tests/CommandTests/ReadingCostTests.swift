import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTree
import Foundation
import Testing

/// How many bytes the tool reads of a long log, as the system counts them.
@Suite("dendro: what is read of a long log")
struct ReadingCostTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  /// The bytes that a call of the tool reads from files, but for those that every call reads. A shell counts what
  /// its children have read.
  private func readByteCount(_ words: [String]) throws -> Int {
    let counted = { (words: [String]) throws -> Int in
      let outcome = try dendro.run(
        ["-c", #""$0" "$@" > output && cat /proc/$$/io"#, Tool.path] + words,
        executable: "/bin/sh")
      #expect(outcome.status == 0, "\(words): \(outcome.errors)")
      let line = outcome.lines.first { $0.hasPrefix("rchar: ") }
      return try #require(line.flatMap { Int($0.dropFirst(7)) })
    }
    let every = try counted(["--version"])
    return try counted(words) - every
  }

  private func byteCount(_ name: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder.path)/db/\(name)")
    return attributes[.size] as? Int ?? 0
  }

  @Test(
    "log --last, info and get read the last segment, headers, and what they show",
    .enabled(if: FileManager.default.isReadableFile(atPath: "/proc/self/io")))
  func long() throws {
    let writeCount = max(60_000, Scale.scaled(5_000_000))
    var options = EngineOptions()
    options.durability = .none
    options.checkpointFactor = 0
    options.history = .all
    options.segmentByteLimit = UInt64(writeCount)
    let engine = try Engine.open(at: "\(folder.path)/db", options: options)
    func write(_ number: Int) throws {
      // Not to be compressed away.
      let user = number &* 7919 % 40_000
      let text = String(UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15, radix: 36)
      engine.submit(
        Draft(.set(try Path(parsing: "users/u\(user)/v\(number % 3)"), Node(.string(text)))),
        completion: nil)
    }
    for number in 0..<(writeCount - 50) {
      try write(number)
      // A segment ends with a batch, and a batch holds all that came while the one before was written.
      if number.isMultiple(of: writeCount / 20) { try engine.synchronize() }
    }
    try engine.checkpoint()
    // What replaying these reads of the checkpoint is read by every call.
    for number in 0..<50 {
      engine.submit(
        Draft(.set(try Path(parsing: "latest/n\(number)"), Node(.integer(1)))), completion: nil)
    }
    try engine.close()

    let names = try folder.names(in: "db")
    let segments = names.filter { $0.hasSuffix(".log") }
    let checkpoint = try #require(names.last { $0.hasSuffix(".checkpoint") })
    let logByteCount = try segments.reduce(0) { try $0 + byteCount($1) }
    let lastByteCount = try byteCount(#require(segments.last))
    #expect(segments.count > 5)
    // Directories, lock files, headers, footers, and an index of checkpoints.
    let headers = (16 << 10) + segments.count * 128

    let log = try readByteCount(["log", "db", "--last", "20"])
    #expect(folder.read("output").split(separator: "\n").count == 21)
    // The headers of the segment, and then its last part.
    let part = min(lastByteCount, 1 << 20)
    #expect(log <= lastByteCount + part + headers, "\(log) of \(logByteCount)")
    let info = try readByteCount(["info", "db"])
    #expect(info <= 2 * lastByteCount + headers, "\(info) of \(logByteCount)")
    let get = try readByteCount(["get", "db", "/users/u7919/v1"])
    // A path leads through few chunks of at most 128 KiB.
    #expect(get <= 2 * lastByteCount + headers + 3 * (128 << 10), "\(get)")
    #expect(get < (try byteCount(checkpoint)))
    print(
      "\(writeCount) writes, \(logByteCount) bytes of log: log --last 20 reads \(log), info \(info), get \(get)"
    )
  }
}
