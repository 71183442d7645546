import DendroStorage
import DendroTestSupport
import Foundation

/// Random damage to a directory, and what it leaves.
struct Damage: CustomStringConvertible {
  /// A file of the directory, and what happened to its bytes.
  struct Place {
    /// The name under which its bytes were written.
    var origin: String
    var bytes: Data
    var changed: [Range<Int>] = []
  }

  private(set) var places: [String: Place]
  private(set) var removed: [String] = []
  private(set) var swapped: [String] = []
  private(set) var description = ""

  init(of directory: LoggedDirectory, count: Int, random: inout SeededGenerator) {
    places = directory.files.reduce(into: [:]) { places, file in
      places[file.key] = Place(origin: file.key, bytes: file.value)
    }
    for _ in 0..<count { add(random: &random) }
  }

  private mutating func add(random: inout SeededGenerator) {
    let names = places.keys.filter { $0.hasSuffix(".log") || $0.hasSuffix(".checkpoint") }.sorted()
    guard let name = names.randomElement(using: &random), let place = places[name],
      place.bytes.count > 1
    else { return }
    let size = place.bytes.count
    let offset = random.below(size)
    switch random.below(10) {
    case 0...3:
      change(name, offset..<(offset + 1)) { $0 ^ UInt8(1 << random.below(8)) }
    case 4, 5:
      let end = min(size, offset + 1 + random.below(300))
      change(name, offset..<end) { _ in 0 }
    case 6:
      let end = min(size, offset + 1 + random.below(300))
      change(name, offset..<end) { _ in UInt8(truncatingIfNeeded: random.next()) }
    case 7:
      places[name]?.bytes = place.bytes.prefix(offset)
      places[name]?.changed.append(offset..<size)
      description += "\(name) cut at \(offset); "
    case 8:
      places[name] = nil
      removed.append(name)
      description += "\(name) removed; "
    default:
      let suffix = name.suffix(4)
      guard
        let other = names.filter({ $0.hasSuffix(suffix) && $0 != name })
          .randomElement(using: &random), let otherPlace = places[other]
      else { return }
      places[name] = otherPlace
      places[other] = place
      swapped += [name, other]
      description += "\(name) and \(other) swapped; "
    }
  }

  private mutating func change(_ name: String, _ range: Range<Int>, _ body: (UInt8) -> UInt8) {
    guard var place = places[name] else { return }
    let old = place.bytes
    for index in range {
      let at = place.bytes.startIndex + index
      place.bytes[at] = body(place.bytes[at])
    }
    guard place.bytes != old else { return }
    place.changed.append(range)
    places[name] = place
    description += "\(name) changed at \(range); "
  }

  /// Writes the damaged files into a directory.
  func write(to path: String) throws {
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    for (name, place) in places {
      try place.bytes.write(to: URL(fileURLWithPath: "\(path)/\(name)"))
    }
  }

  /// Whether all bytes in the range are as they were.
  func isIntact(_ place: Place, _ range: Range<UInt64>) -> Bool {
    !place.changed.contains { $0.overlaps(Int(range.lowerBound)..<Int(range.upperBound)) }
  }

  // MARK: What can be saved

  /// The newest checkpoint of which every byte is there, under its name.
  func checkpoint(of directory: LoggedDirectory) -> UInt64? {
    places.filter { name, place in
      name.hasSuffix(".checkpoint") && place.origin == name && place.changed.isEmpty
    }.keys.max().flatMap { UInt64($0.prefix(20)) }
  }

  /// The writes that can be saved from the log: at least `sure`, which depend on no damaged byte, and at most
  /// `possible`, whose own bytes are whole. In between are those compressed against damaged ones.
  func savable(of directory: LoggedDirectory) -> (sure: Set<UInt64>, possible: Set<UInt64>) {
    var (sure, possible) = (Set<UInt64>(), Set<UInt64>())
    let segments = places.values.filter { place in
      place.origin.hasSuffix(".log") && isIntact(place, 0..<64)
    }.sorted { $0.origin < $1.origin }
    let newest = places.keys.filter { $0.hasSuffix(".checkpoint") }.max()
    let proven = newest.flatMap { UInt64($0.prefix(20)) } ?? 0
    for place in segments {
      let records = directory.records[place.origin] ?? []
      let isLast = place.origin == segments.last?.origin
      // The proof that is left in the last segment: its headers, and the names of checkpoints.
      let durable =
        records.filter {
          isIntact(place, $0.offset..<($0.offset + UInt64($0.headerByteCount)))
        }.map(\.durableUpTo.rawValue).max() ?? 0
      var isHistoryWhole = true
      var last = (UInt64(place.origin.prefix(20)) ?? 1) - 1
      for record in records {
        let isWhole = isIntact(place, record.offset..<record.endOffset)
        if record.header.isRestart { isHistoryWhole = true }
        // Of the remains of a crash nothing is taken.
        if isLast, !isWhole, max(durable, proven) <= last { break }
        if isWhole, record.kind == .writes {
          let numbers = record.firstLSN.rawValue...record.lastLSN.rawValue
          possible.formUnion(numbers)
          if isHistoryWhole || !record.header.isCompressed { sure.formUnion(numbers) }
        }
        if !isWhole, record.kind == .writes { isHistoryWhole = false }
        if isWhole { last = max(last, record.lastLSN.rawValue) }
      }
    }
    return (sure, possible)
  }
}
