import DendroEngine
import DendroStorage
import DendroTree
import Foundation
import Testing

/// A real file system that is full after a megabyte.
private final class Tmpfs {
  let path: String

  /// Nil if the system does not let us mount one.
  init?() {
    path = FileManager.default.temporaryDirectory.path + "/dendro-tmpfs-\(UUID().uuidString)"
    guard
      (try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true))
        != nil
    else { return nil }
    guard Self.run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", path) else {
      try? FileManager.default.removeItem(atPath: path)
      return nil
    }
  }

  deinit {
    _ = Self.run("umount", "-l", path)
    try? FileManager.default.removeItem(atPath: path)
  }

  static func run(_ arguments: String...) -> Bool {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
  }

  static let isAvailable: Bool = Tmpfs() != nil
}

@Suite("A real disk that is full")
struct FullDiskTests {
  /// Fills the disk but for `free` bytes.
  private func fill(_ path: String, leaving free: Int) throws {
    _ = FileManager.default.createFile(atPath: path, contents: nil)
    let handle = try #require(FileHandle(forWritingAtPath: path))
    let page = Data(repeating: 0x5A, count: 4096)
    while (try? handle.write(contentsOf: page)) != nil {}
    let size = try handle.offset()
    try handle.truncate(atOffset: size > UInt64(free) ? size - UInt64(free) : 0)
    try handle.close()
  }

  @Test(
    "writes are taken back, reads go on, and writes work again once there is room",
    .enabled(if: Tmpfs.isAvailable, "mounting a tmpfs needs root"),
    arguments: [0, 4096, 40_960])
  func appendOnAFullDisk(free: Int) async throws {
    let tmpfs = try #require(Tmpfs())
    let database = tmpfs.path + "/db"
    let engine = try Engine.open(at: database)
    try await engine.write(set("kept", .integer(1)))
    let before = engine.head.root
    try fill(tmpfs.path + "/ballast", leaving: free)
    // Whatever there is room for goes in first; then comes the refusal.
    var accepted = 0
    var refusal: EngineError?
    while refusal == nil, accepted < 1000 {
      do throws(EngineError) {
        try await engine.write(
          Draft(.set(Path(keys: [key("n\(accepted)")]), Node(.string(incompressible(20_000))))))
        accepted += 1
      } catch {
        refusal = error
      }
    }
    guard case .diskFull = refusal else {
      Issue.record("expected a full disk, found \(String(describing: refusal))")
      return
    }
    #expect(try engine.view(at: path("kept")).scalar == .integer(1))
    #expect(engine.head.root.childCount == before.childCount + accepted)
    #expect(try engine.view(at: path("n\(accepted)")).isEmpty)
    try FileManager.default.removeItem(atPath: tmpfs.path + "/ballast")
    // The next write may still be refused: it is what makes the engine look for room.
    var again: LogSequenceNumber??
    for _ in 0..<1000 where again == nil {
      again = try? await engine.write(set("again", .integer(2)))
    }
    #expect(again != nil)
    let root = engine.head.root
    try await engine.close()
    let reopened = try Engine.open(at: database)
    #expect(reopened.head.root == root)
    #expect(reopened.report.tornTail == nil)
    try await reopened.close()
  }

  @Test(
    "no room for a checkpoint: the error says so, nothing is lost, and it works once there is room",
    .enabled(if: Tmpfs.isAvailable, "mounting a tmpfs needs root"))
  func checkpointOnAFullDisk() async throws {
    let tmpfs = try #require(Tmpfs())
    let database = tmpfs.path + "/db"
    let engine = try Engine.open(at: database)
    try await engine.write(set("kept", .string(incompressible(400_000))))
    try fill(tmpfs.path + "/ballast", leaving: 20_480)
    var failure: EngineError?
    do throws(EngineError) {
      try await engine.checkpoint()
    } catch {
      failure = error
    }
    #expect(failure != nil)
    try FileManager.default.removeItem(atPath: tmpfs.path + "/ballast")
    var lsn: LogSequenceNumber??
    for _ in 0..<1000 where lsn == nil { lsn = try? await engine.write(set("more", .integer(2))) }
    #expect(lsn != nil)
    try await engine.checkpoint()
    let root = engine.head.root
    try await engine.close()
    let reopened = try Engine.open(at: database)
    #expect(reopened.head.root == root)
    #expect(reopened.report.checkpointLSN == LogSequenceNumber(2))
    try await reopened.close()
  }
}

private func key(_ string: String) -> Key {
  do {
    return try Key(string)
  } catch {
    preconditionFailure("\(error)")
  }
}
