import DendroStorage
import DendroTestSupport
import Foundation

/// Random damage to a directory, and what it leaves.
struct Damage: CustomStringConvertible {
  var files: [String: DamagedFile]
  private(set) var removed: [String] = []
  private(set) var swapped: [String] = []
  private(set) var description = ""
  /// How many kinds of damage there are.
  static let kindCount = 14

  /// Does so many random things to random files.
  func adding(_ count: Int, random: inout SeededGenerator) -> Damage {
    var damage = self
    for _ in 0..<count { damage.add(random.below(Self.kindCount), random: &random) }
    return damage
  }

  init(of directory: LoggedDirectory) {
    files = directory.files.reduce(into: [:]) { files, file in
      files[file.key] = DamagedFile(file.key, Array(file.value))
    }
  }

  /// Does one thing to a random file.
  mutating func add(_ kind: Int, random: inout SeededGenerator) {
    let names = files.keys.filter { $0.hasSuffix(".log") || $0.hasSuffix(".checkpoint") }.sorted()
    guard let name = names.randomElement(using: &random), let size = files[name]?.bytes.count,
      size > 1
    else { return }
    let offset = random.below(size)
    let range = offset..<min(size, offset + 1 + random.below(300))
    switch kind {
    case 0...2:
      let bit = UInt8(1 << random.below(8))
      change(name, "bit \(bit) of byte \(offset) flipped") {
        $0.change(offset..<(offset + 1)) { $0 ^ bit }
      }
    case 3: change(name, "\(range) zero") { $0.change(range) { _ in 0 } }
    case 4:
      change(name, "\(range) random") {
        $0.change(range) { _ in UInt8(truncatingIfNeeded: random.next()) }
      }
    case 5: change(name, "cut at \(offset)") { $0.remove(offset..<size) }
    case 6: change(name, "\(range) removed") { $0.remove(range) }
    case 7:
      let bytes = (0...random.below(40)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      change(name, "\(bytes.count) bytes inserted at \(offset)") { $0.insert(bytes, at: offset) }
    case 8:
      let second = random.below(size)
      let count = min(abs(second - offset), size - max(offset, second), 1 + random.below(2000))
      let (low, high) = (min(offset, second), max(offset, second))
      change(name, "\(count) bytes at \(low) and \(high) exchanged") {
        $0.exchange(low..<low + count, high..<high + count)
      }
    case 9:
      let target = random.below(size)
      change(name, "\(range) copied to \(target)") { $0.copy(range, to: target) }
    case 10:
      let head = 0..<min(size, [16, 64, 200][random.below(3)])
      change(name, "\(head) zero") { $0.change(head) { _ in 0 } }
    case 11:
      let bytes = (0...random.below(40)).map { _ in UInt8(truncatingIfNeeded: random.next()) | 1 }
      change(name, "\(bytes.count) bytes behind the end") { $0.insert(bytes, at: size) }
    case 12: remove(name)
    default:
      let suffix = name.suffix(4)
      guard
        let other = names.filter({ $0.hasSuffix(suffix) && $0 != name })
          .randomElement(using: &random)
      else { return }
      swap(name, other)
    }
  }

  mutating func remove(_ name: String) {
    files[name] = nil
    removed.append(name)
    description += "\(name) removed; "
  }

  mutating func swap(_ name: String, _ other: String) {
    (files[name], files[other]) = (files[other], files[name])
    swapped += [name, other]
    description += "\(name) and \(other) swapped; "
  }

  mutating func change(
    _ name: String, _ what: String, _ body: (inout DamagedFile) -> Void
  ) {
    guard var file = files[name] else { return }
    let old = file.bytes
    body(&file)
    guard file.bytes != old else { return }
    files[name] = file
    description += "\(name): \(what); "
  }

  /// Writes the damaged files into a directory.
  func write(to path: String) throws {
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    for (name, file) in files {
      try Data(file.bytes).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
    }
  }

  // MARK: What can be saved

  /// The newest checkpoint of which every byte is there, under its name.
  func checkpoint(of directory: LoggedDirectory) -> UInt64? {
    files.filter { name, file in
      name.hasSuffix(".checkpoint") && file.origin == name && !file.isChanged
    }.keys.max().flatMap { UInt64($0.prefix(20)) }
  }

  /// The writes that must be saved from the log: those that depend on no damaged byte. Others may be, those compressed
  /// against damaged ones, those in a file without its header, and those that nothing proves durable.
  func savable(of directory: LoggedDirectory) -> Set<UInt64> {
    var sure = Set<UInt64>()
    let segments = files.filter { $0.value.origin.hasSuffix(".log") }.sorted {
      $0.value.origin < $1.value.origin
    }
    let newest = files.keys.filter { $0.hasSuffix(".checkpoint") }.max()
    var proven = newest.flatMap { UInt64($0.prefix(20)) } ?? 0
    for (_, file) in segments {
      for record in directory.records[file.origin] ?? []
      where file.survives(record.headerRange) { proven = max(proven, record.durableUpTo.rawValue) }
    }
    for (_, file) in segments {
      let records = directory.records[file.origin] ?? []
      let isLast = file.origin == segments.last?.value.origin
      let isHeaderWhole = file.isInPlace(0..<64)
      var isHistoryWhole = true
      var last = (UInt64(file.origin.prefix(20)) ?? 1) - 1
      var isTorn = false
      for record in records {
        let range = Int(record.offset)..<Int(record.endOffset)
        let isWhole = file.survives(range)
        if record.header.isRestart { isHistoryWhole = true }
        // Of the remains of a crash nothing has to be taken.
        if isLast, !isWhole, proven <= last { isTorn = true }
        if isWhole, record.kind == .writes {
          let numbers = record.firstLSN.rawValue...record.lastLSN.rawValue
          let dependsOnOthers = record.header.isCompressed || record.header.isShort
          if isHeaderWhole, !isTorn, isHistoryWhole || !dependsOnOthers { sure.formUnion(numbers) }
        }
        if !isWhole, record.kind == .writes { isHistoryWhole = false }
        if isWhole { last = max(last, record.lastLSN.rawValue) }
      }
    }
    return sure
  }
}

extension RecordInfo {
  /// Where its header stands.
  fileprivate var headerRange: Range<Int> { Int(offset)..<Int(offset) + headerByteCount }
}
