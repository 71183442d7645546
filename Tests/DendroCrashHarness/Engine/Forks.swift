package import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree

/// A database, and two that went on from it on their own: same identity, same salt in the last
/// common segment, the same file names, another content.
package struct Forks: Sendable {
  package let base: EngineRecording
  package let a: EngineRecording
  package let b: EngineRecording
  /// A database that has nothing to do with them, of the same shape.
  package let stranger: EngineRecording

  package init() throws(EngineError) {
    base = try EngineRecording(
      seed: 21, steps: [.set("a", .integer(1)), .roll, .set("b", .integer(2))])
    a = try Self.fork(base, "first")
    b = try Self.fork(base, "other")
    stranger = try EngineRecording(
      seed: 99, steps: [.set("a", .integer(1)), .roll, .set("x", .integer(2)), .roll])
    precondition(Self.names(a.disk) == Self.names(b.disk), "the forks have other file names")
  }

  /// Both with records of one length at the same places, too short to be compressed: else the
  /// other fork's would not even decode.
  private static func fork(_ base: EngineRecording, _ word: String) throws(EngineError)
    -> EngineRecording
  {
    var random = SeededRandomness(seed: word.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) })
    let steps: [Step] = (0..<4).map { index in
      let text = (0..<6).map { _ in
        Character(Unicode.Scalar(UInt8.random(in: 0x61...0x7a, using: &random)))
      }
      return .set("c/\(index)", .string(String(text)))
    }
    return try EngineRecording(
      seed: random.next(),
      steps: steps + [.roll, .set("d", .string(word)), .roll, .set("e", .string(word))],
      after: base)
  }

  /// The names of the segments in their order.
  package var names: [String] { Self.names(a.disk) }

  static func names(_ disk: SimulatedDisk) -> [String] {
    disk.names(in: EngineRecording.directory).filter { $0.hasSuffix(".log") }
  }

  static func path(_ name: String) -> String { EngineRecording.directory + "/" + name }

  /// The content of a segment of that fork.
  func bytes(_ fork: EngineRecording, _ name: String) -> [UInt8] {
    fork.disk.contents(of: Self.path(name)) ?? []
  }

  /// Whether the directory is served. What may be served is a tree that one of them had; else it is
  /// refused as damaged.
  func isServed(
    _ disk: SimulatedDisk, _ what: String, _ place: Reproduction, _ tally: inout Tally
  ) -> Bool {
    tally.count += 1
    do throws(EngineError) {
      let root = try EngineRecording.open(disk).head.root
      if !(a.trees + b.trees).contains(where: { $0 == root }) {
        tally.fail(place, "\(what): a tree that neither had")
      }
      tally.details["served", default: 0] += 1
      return true
    } catch {
      if error.isDamage { return false }
      tally.fail(place, "\(what): refused as \(error)")
      return false
    }
  }
}

extension SimulatedDisk {
  /// Puts other content into a file.
  func replace(_ path: String, with bytes: [UInt8]) {
    resize(path, to: 0)
    overwrite(path, at: 0, with: bytes)
  }
}
