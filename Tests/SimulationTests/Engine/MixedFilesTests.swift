import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Testing

/// Files that do not belong together: what a careless copy or restore leaves.
@Suite struct MixedFilesTests {
  /// A database, and two that went on from it on their own: same identity, same salt in the last
  /// common segment, the same file names, another content.
  struct Forks {
    let base: EngineRecording
    let a: EngineRecording
    let b: EngineRecording

    init() throws(EngineError) {
      base = try EngineRecording(
        seed: 21, steps: [.set("a", .integer(1)), .roll, .set("b", .integer(2))])
      a = try Self.fork(base, "first")
      b = try Self.fork(base, "other")
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

    func trees() -> [Node] { a.trees + b.trees }
  }

  private func names(_ disk: SimulatedDisk) -> [String] {
    disk.names(in: EngineRecording.directory).filter { $0.hasSuffix(".log") }
  }

  /// What may be served is a tree that one of them had; else it is refused as damaged.
  private func judge(_ disk: SimulatedDisk, _ forks: Forks, _ what: Comment) -> Bool {
    do throws(EngineError) {
      let root = try EngineRecording.open(disk).head.root
      #expect(forks.trees().contains { $0 == root }, what)
      return true
    } catch {
      guard case .storage(.corrupt) = error else {
        Issue.record("\(what): refused as \(error)")
        return false
      }
      return false
    }
  }

  @Test func everyMixOfTheFilesOfTwoForks() throws {
    let forks = try Forks()
    let names = names(forks.a.disk)
    #expect(names == self.names(forks.b.disk))
    var served = 0
    for mask in 0..<1 << names.count {
      let disk = forks.a.disk.copy()
      for (index, name) in names.enumerated() where mask >> index & 1 == 1 {
        let path = EngineRecording.directory + "/" + name
        let bytes = try #require(forks.b.disk.contents(of: path))
        disk.resize(path, to: 0)
        disk.overwrite(path, at: 0, with: bytes)
      }
      if judge(disk, forks, "mix \(String(mask, radix: 2))") { served += 1 }
    }
    // Wholly the one or wholly the other, whatever the files that they have in common.
    #expect(served == 2 << 1)
  }

  /// The beginning of one fork's segment with the end of the other's, at every byte.
  @Test func everySpliceOfTwoForks() throws {
    let forks = try Forks()
    let path = EngineRecording.directory + "/" + names(forks.a.disk)[1]
    let other = try #require(forks.b.disk.contents(of: path))
    let one = try #require(forks.a.disk.contents(of: path))
    #expect(one.count == other.count)
    for place in 0..<other.count {
      // The later segments are of the one or of the other.
      let disk = forks.a.disk.copy()
      disk.overwrite(path, at: place, with: Array(other[place...]))
      _ = judge(disk, forks, "spliced at \(place)")
      let second = forks.b.disk.copy()
      second.overwrite(path, at: 0, with: Array(one[..<place]))
      _ = judge(second, forks, "spliced at \(place), with the later segments")
    }
  }

  /// Without its seal a segment is held against its successor: another fork's does not confirm it.
  @Test func everyLostSealBeforeTheOtherForksSegments() throws {
    let forks = try Forks()
    let names = names(forks.a.disk)
    let path = EngineRecording.directory + "/" + names[1]
    let size = try #require(forks.a.disk.contents(of: path)?.count)
    for cut in 1...min(60, size - 64) {
      let own = forks.a.disk.copy()
      own.resize(path, to: size - cut)
      // A seal takes 28 bytes; more is a part of the last record.
      #expect(cut > 28 || judge(own, forks, "a seal lost alone, \(cut) bytes"))
      let disk = forks.a.disk.copy()
      disk.resize(path, to: size - cut)
      for name in names[2...] {
        let path = EngineRecording.directory + "/" + name
        let bytes = try #require(forks.b.disk.contents(of: path))
        disk.resize(path, to: 0)
        disk.overwrite(path, at: 0, with: bytes)
      }
      #expect(!judge(disk, forks, "\(cut) bytes cut, and the other's segments"))
    }
  }

  @Test func aSegmentOfAnotherDatabase() throws {
    let forks = try Forks()
    let stranger = try EngineRecording(
      seed: 99, steps: [.set("a", .integer(1)), .roll, .set("x", .integer(2)), .roll])
    for name in names(stranger.disk) where names(forks.a.disk).contains(name) {
      let path = EngineRecording.directory + "/" + name
      let disk = forks.a.disk.copy()
      let bytes = try #require(stranger.disk.contents(of: path))
      disk.resize(path, to: 0)
      disk.overwrite(path, at: 0, with: bytes)
      #expect(!judge(disk, forks, "\(name) of another database"))
    }
  }

  @Test func aCheckpointOfAnotherDatabase() throws {
    let steps: [Step] = [.set("a", .integer(1)), .checkpoint, .set("b", .integer(2))]
    let own = try EngineRecording(seed: 21, steps: steps)
    let stranger = try EngineRecording(seed: 99, steps: steps)
    let name = try #require(
      own.disk.names(in: EngineRecording.directory).first { $0.hasSuffix(".checkpoint") })
    let path = EngineRecording.directory + "/" + name
    let bytes = try #require(stranger.disk.contents(of: path))
    let disk = own.disk.copy()
    disk.resize(path, to: 0)
    disk.overwrite(path, at: 0, with: bytes)
    do throws(EngineError) {
      _ = try EngineRecording.open(disk)
      Issue.record("a checkpoint of another database was taken")
    } catch {
      guard case .storage(.corrupt(_, 16, _, _)) = error else {
        Issue.record("\(error)")
        return
      }
    }
  }

  /// Two checkpoints are kept and the log back to the older one, so that any damage to the newest
  /// can be made up for; the report names it.
  @Test func theOlderCheckpointServes() throws {
    let recording = try EngineRecording(
      seed: 3,
      steps: (0..<4).flatMap { index -> [Step] in
        [
          .set("a/\(index)", .string("value \(index)")), .checkpoint,
          .set("n", .integer(Int64(index))),
        ]
      })
    let checkpoints = recording.disk.names(in: EngineRecording.directory)
      .filter { $0.hasSuffix(".checkpoint") }
    #expect(checkpoints.count == 2)
    let path = EngineRecording.directory + "/" + (try #require(checkpoints.last))
    let size = try #require(recording.disk.contents(of: path)?.count)
    for bit in 0..<size * 8 {
      let disk = recording.disk.copy()
      disk.flipBit(bit, of: path)
      do throws(EngineError) {
        let engine = try EngineRecording.open(disk)
        #expect(engine.head.root == recording.trees.last, "bit \(bit)")
        #expect(engine.report.unreadableCheckpoints.count <= 1)
      } catch {
        // A format of the future is not guessed at.
        guard case .storage(.unsupportedVersion) = error else {
          Issue.record("bit \(bit): \(error)")
          continue
        }
      }
    }
    let disk = recording.disk.copy()
    disk.flipBit(size * 4, of: path)
    #expect(try EngineRecording.open(disk).report.unreadableCheckpoints.count == 1)
  }

  /// The same log replayed twice gives the same tree and the same content hash, which are the live
  /// ones; the same seed gives the same files.
  @Test(arguments: 0..<30 as Range<UInt64>) func sameSeedSameFiles(seed: UInt64) throws {
    let one = try CrashStateTests.recording(seed)
    let two = try CrashStateTests.recording(seed)
    for name in one.disk.names(in: EngineRecording.directory) where name != "dendro.lock" {
      let path = EngineRecording.directory + "/" + name
      #expect(one.disk.contents(of: path) == two.disk.contents(of: path), "\(name)")
    }
    let a = try EngineRecording.open(one.disk.copy()).head.root
    let b = try EngineRecording.open(two.disk.copy()).head.root
    #expect(a == b && a == one.trees.last)
    #expect(
      CheckpointCoding.contentHash(of: a) == CheckpointCoding.contentHash(of: one.trees.last!))
  }
}
