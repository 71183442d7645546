import DendroEngine
import DendroStorage
import DendroTestSupport
import Foundation

/// What can happen to the files of a database, a backup or an archive: one row of the table of damages each.
struct DamageKind: Sendable, CustomStringConvertible {
  enum Form: String, CaseIterable, Sendable {
    /// A log that begins with the first write, and checkpoints.
    case history = "with history"
    /// What an opening needs, and no more.
    case recent = "database"
    case log = "log alone"
    case backup, archive
  }

  let name: String
  let form: Form
  let apply: @Sendable (inout Damage, LoggedDirectory) -> Void

  init(
    _ form: Form, _ name: String,
    _ apply: @escaping @Sendable (inout Damage, LoggedDirectory) -> Void
  ) {
    (self.form, self.name, self.apply) = (form, name, apply)
  }

  var description: String { "\(form.rawValue): \(name)" }

  // MARK: Where

  /// A segment with many writes, in the middle of the log.
  private static func segment(_ good: LoggedDirectory) -> String {
    let names = good.segmentNames.dropLast()
    return names.max { writes(in: $0, good).count < writes(in: $1, good).count } ?? names[0]
  }

  private static func writes(in name: String, _ good: LoggedDirectory) -> [RecordInfo] {
    (good.records[name] ?? []).filter { $0.kind == .writes }
  }

  /// A record in the middle of that segment.
  private static func record(_ good: LoggedDirectory) -> (name: String, record: RecordInfo) {
    let name = segment(good)
    let records = writes(in: name, good)
    return (name, records[records.count / 2])
  }

  private static func seal(_ good: LoggedDirectory) -> (name: String, range: Range<Int>) {
    let name = segment(good)
    let seal = good.records[name]?.last { $0.kind == .seal }
    return (name, seal.map { Int($0.offset)..<Int($0.endOffset) } ?? 64..<65)
  }

  private static func newest(_ good: LoggedDirectory) -> String { good.checkpointNames.last ?? "" }

  /// The place of a chunk of the newest checkpoint: a share of the file from its beginning.
  private static func chunk(_ good: LoggedDirectory, _ share: Double) -> Int {
    Int(Double(good.files[newest(good)]?.count ?? 0) * share)
  }

  // MARK: Kinds

  /// Something done to a record: its bytes, and where its payload begins.
  private static func onRecord(
    _ form: Form, _ name: String,
    _ body: @escaping @Sendable (inout DamagedFile, Range<Int>, _ payload: Int) -> Void
  ) -> Self {
    Self(form, name) { damage, good in
      let (file, record) = record(good)
      let start = Int(record.offset)
      damage.change(file, name) {
        body(&$0, start..<Int(record.endOffset), start + record.headerByteCount)
      }
    }
  }

  private static func onSegment(
    _ form: Form, _ name: String, _ body: @escaping @Sendable (inout DamagedFile) -> Void
  ) -> Self {
    Self(form, name) { damage, good in damage.change(segment(good), name, body) }
  }

  private static func onCheckpoint(
    _ form: Form, _ name: String,
    _ body: @escaping @Sendable (inout DamagedFile, _ at: (Double) -> Int) -> Void
  ) -> Self {
    Self(form, name) { damage, good in
      damage.change(newest(good), name) { body(&$0) { chunk(good, $0) } }
    }
  }

  private static let records: [Self] = Form.allCases.filter { $0 != .backup }.flatMap { form in
    [
      onRecord(form, "a bit of a payload flipped") { file, range, payload in
        file.change(payload..<payload + 1) { $0 ^ 1 }
      },
      onRecord(form, "a bit of a record's header flipped") { file, range, _ in
        file.change(range.lowerBound + 4..<range.lowerBound + 5) { $0 ^ 8 }
      },
      onRecord(form, "512 bytes cut out") { file, range, _ in
        file.remove(range.lowerBound..<min(file.bytes.count, range.lowerBound + 512))
      },
      onRecord(form, "5 bytes inserted") { file, range, _ in
        file.insert([1, 2, 3, 4, 5], at: range.lowerBound + 2)
      },
    ]
  }

  private static let segments: [Self] = [
    onRecord(.log, "a record zero") { file, range, _ in file.change(range) { _ in 0 } },
    onRecord(.log, "a record cut out") { file, range, _ in file.remove(range) },
    onRecord(.log, "a record copied over the one before") { file, range, _ in
      file.copy(range, to: range.lowerBound - range.count)
    },
    onRecord(.log, "5 bytes inserted, and 7 behind") { file, range, _ in
      file.insert([1, 2, 3, 4, 5, 6, 7], at: range.upperBound + 20)
      file.insert([1, 2, 3, 4, 5], at: range.lowerBound)
    },
    onSegment(.log, "a bit of a segment's header flipped") { $0.change(33..<34) { $0 ^ 4 } },
    onSegment(.log, "a segment's header zero") { $0.change(0..<64) { _ in 0 } },
    onSegment(.recent, "a segment's header zero") { $0.change(0..<64) { _ in 0 } },
    onSegment(.log, "the first 64 bytes of a segment cut off") { $0.remove(0..<64) },
    onSegment(.history, "a segment cut in half") { $0.remove($0.bytes.count / 2..<$0.bytes.count) },
    onSegment(.history, "a segment empty") { $0.remove(0..<$0.bytes.count) },
    onSegment(.history, "bytes behind a seal") { $0.insert([9, 9, 9], at: $0.bytes.count) },
    Self(.history, "a bit of a seal flipped") { damage, good in
      let (name, range) = seal(good)
      damage.change(name, "") { $0.change(range.lowerBound + 6..<range.lowerBound + 7) { $0 ^ 1 } }
    },
    Self(.history, "a seal cut off") { damage, good in
      let (name, range) = seal(good)
      damage.change(name, "") { $0.remove(range) }
    },
    Self(.history, "a segment removed") { damage, good in damage.remove(segment(good)) },
    Self(.log, "the first segment removed") { damage, good in damage.remove(good.segmentNames[0]) },
    Self(.recent, "all segments removed") { damage, good in
      for name in good.segmentNames { damage.remove(name) }
    },
    Self(.history, "two segments swapped") { damage, good in
      let names = good.segmentNames
      damage.swap(names[names.count / 2], names[names.count / 2 + 1])
    },
    Self(.archive, "a segment removed") { damage, good in damage.remove(segment(good)) },
    Self(.recent, "a foreign segment in the place of one") { damage, good in
      let name = segment(good)
      damage.files[name] = foreign(name)
    },
    Self(.log, "a foreign first segment") { damage, good in
      damage.files[good.segmentNames[0]] = foreign(good.segmentNames[0])
    },
  ]

  /// A file of another database, with the same name.
  private static func foreign(_ name: String) -> DamagedFile? {
    let disk = SimulatedFiles.other
    return disk[name].map { DamagedFile("another", Array($0)) }
      ?? disk.first.map { DamagedFile("another", Array($0.value)) }
  }

  private static let checkpoints: [Self] = [
    onCheckpoint(.backup, "a bit of a chunk flipped") { file, at in
      file.change(at(0.5)..<at(0.5) + 1) { $0 ^ 1 }
    },
    onCheckpoint(.backup, "bits of two chunks flipped") { file, at in
      for share in [0.3, 0.6] { file.change(at(share)..<at(share) + 1) { $0 ^ 1 } }
    },
    onCheckpoint(.backup, "64 bytes zero") { file, at in
      file.change(at(0.4)..<at(0.4) + 64) { _ in 0 }
    },
    onCheckpoint(.backup, "200 bytes cut out") { file, at in file.remove(at(0.4)..<at(0.4) + 200) },
    onCheckpoint(.backup, "5 bytes inserted") { file, at in
      file.insert([1, 2, 3, 4, 5], at: at(0.4))
    },
    onCheckpoint(.backup, "300 bytes exchanged") { file, at in
      file.exchange(at(0.2)..<at(0.2) + 300, at(0.7)..<at(0.7) + 300)
    },
    onCheckpoint(.backup, "300 bytes copied") { file, at in
      file.copy(at(0.2)..<at(0.2) + 300, to: at(0.5))
    },
    onCheckpoint(.backup, "the header zero") { file, _ in file.change(0..<64) { _ in 0 } },
    onCheckpoint(.backup, "a bit of the header flipped") { file, _ in
      file.change(20..<21) { $0 ^ 1 }
    },
    onCheckpoint(.backup, "a bit of the footer flipped") { file, _ in
      file.change(file.bytes.count - 20..<file.bytes.count - 19) { $0 ^ 1 }
    },
    onCheckpoint(.backup, "the footer cut off") { file, _ in
      file.remove(file.bytes.count - 40..<file.bytes.count)
    },
    onCheckpoint(.backup, "index and footer cut off") { file, _ in
      file.remove(file.bytes.count - 200..<file.bytes.count)
    },
    onCheckpoint(.backup, "the second half cut off") { file, at in
      file.remove(at(0.5)..<file.bytes.count)
    },
    onCheckpoint(.backup, "a chunk flipped and the footer cut off") { file, at in
      file.change(at(0.5)..<at(0.5) + 1) { $0 ^ 1 }
      file.remove(file.bytes.count - 40..<file.bytes.count)
    },
    onCheckpoint(.recent, "a bit of a chunk flipped") { file, at in
      file.change(at(0.5)..<at(0.5) + 1) { $0 ^ 1 }
    },
    onCheckpoint(.history, "the footer cut off") { file, _ in
      file.remove(file.bytes.count - 40..<file.bytes.count)
    },
    Self(.recent, "the newest checkpoint removed") { damage, good in damage.remove(newest(good)) },
    Self(.history, "all checkpoints removed") { damage, good in
      for name in good.checkpointNames { damage.remove(name) }
    },
    Self(.recent, "the lock removed") { damage, _ in damage.files["dendro.lock"] = nil },
    Self(.recent, "bytes in the lock") { damage, _ in
      damage.files["dendro.lock"] = DamagedFile("dendro.lock", [1, 2, 3])
    },
    Self(.recent, "a chunk and a record's payload flipped") { damage, good in
      let place = chunk(good, 0.5)
      damage.change(newest(good), "") { $0.change(place..<place + 1) { $0 ^ 1 } }
      let (name, record) = record(good)
      let payload = Int(record.offset) + record.headerByteCount
      damage.change(name, "") { $0.change(payload..<payload + 1) { $0 ^ 1 } }
    },
    Self(.history, "the newest checkpoint and a segment removed") { damage, good in
      damage.remove(newest(good))
      damage.remove(good.segmentNames[good.segmentNames.count - 2])
    },
  ]

  static let all = records + segments + checkpoints
}

/// The files of a database that has nothing to do with the others.
private enum SimulatedFiles {
  static let other: [String: Data] = {
    guard let folder = try? Folder(),
      let other = try? LoggedDirectory(
        at: "\(folder.path)/other", seed: 99, keepsHistory: true,
        id: DatabaseID(high: 5, low: 6))
    else { return [:] }
    return other.files
  }()
}
