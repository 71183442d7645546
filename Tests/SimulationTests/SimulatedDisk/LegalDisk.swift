import DendroStorage
import DendroTesting

/// What a crash may leave, computed in the simplest way: for each byte of each file and for each name,
/// the set of the values that it may have. Looser than the disk under test where bytes depend on
/// each other, never tighter.
struct LegalDisk {
  final class Content {
    var bytes: [UInt8] = []
    /// Which values the byte at each place may have; absent places: only zero.
    var possible: [Int: Set<UInt8>] = [:]
    var sizes: Set<Int> = [0]
    /// Places of pending writes, where garbage may stand.
    var touched: Set<Int> = []
  }

  private var names: [String: Content] = [:]
  private var possible: [String: [Content?]] = [:]
  private var handles: [(file: any File, content: Content)] = []

  private static let pool = ["a", "b", "c"]

  mutating func step(on disk: SimulatedDisk, using random: inout SeededRandomness) throws {
    let name = Self.pool.randomElement(using: &random)!
    let other = Self.pool.randomElement(using: &random)!
    switch Int.random(in: 0..<12, using: &random) {
    case 0, 1:
      guard names[name] == nil else { return }
      let content = Content()
      handles.append((try disk.open("/" + name, .create), content))
      set(name, to: content)
    case 2:
      guard let content = names[name], name != other else { return }
      try disk.rename("/" + name, to: "/" + other)
      set(name, to: nil)
      set(other, to: content)
    case 3:
      guard names[name] != nil else { return }
      try disk.remove("/" + name)
      set(name, to: nil)
    case 4, 5:
      try disk.synchronizeDirectory("/")
      possible = names.mapValues { [$0] }
    case let kind:
      guard let (file, content) = handles.randomElement(using: &random) else { return }
      switch kind {
      case 6, 7, 8:
        let offset = Int.random(in: 0...content.bytes.count + 3, using: &random)
        let count = Int.random(in: 1...40, using: &random)
        let bytes = (0..<count).map { _ in UInt8.random(in: 1...255, using: &random) }
        _ = try bytes.withUnsafeBytes { try file.write($0, at: UInt64(offset)) }
        for (place, byte) in bytes.enumerated() {
          content.possible[offset + place, default: [0]].insert(byte)
          content.touched.insert(offset + place)
          // What tears or is dropped may show zeros once the file has grown.
          if offset + place >= content.bytes.count { content.possible[offset + place]!.insert(0) }
        }
        let end = offset + count
        if end > content.bytes.count {
          content.bytes += Array(repeating: 0, count: end - content.bytes.count)
        }
        content.bytes.replaceSubrange(offset..<end, with: bytes)
        content.sizes.formUnion(0...end)
      case 9:
        let size = Int.random(in: 0...60, using: &random)
        try file.truncate(to: UInt64(size))
        if size < content.bytes.count {
          for place in size..<content.bytes.count { content.possible[place]?.insert(0) }
          content.bytes.removeSubrange(size...)
        } else {
          content.bytes += Array(repeating: 0, count: size - content.bytes.count)
        }
        content.sizes.formUnion(0...size)
      default:
        try file.synchronize()
        content.possible = Dictionary(
          uniqueKeysWithValues: content.bytes.enumerated().map { ($0.offset, [$0.element]) })
        content.sizes = [content.bytes.count]
        content.touched = []
      }
    }
  }

  private mutating func set(_ name: String, to content: Content?) {
    possible[name, default: [names[name]]].append(content)
    names[name] = content
  }

  func problem(of disk: SimulatedDisk, allowingGarbage: Bool = false) -> String? {
    for name in Self.pool {
      let candidates = possible[name] ?? [nil]
      guard let bytes = disk.contents(of: "/" + name) else {
        if !candidates.contains(where: { $0 == nil }) { return "\(name) is gone" }
        continue
      }
      let fits = candidates.contains { content in
        guard let content, content.sizes.contains(bytes.count) else { return false }
        return bytes.enumerated().allSatisfy { place, byte in
          let values = content.possible[place] ?? [0]
          return values.contains(byte) || (allowingGarbage && content.touched.contains(place))
        }
      }
      if !fits { return "\(name) holds \(bytes)" }
    }
    return nil
  }
}
