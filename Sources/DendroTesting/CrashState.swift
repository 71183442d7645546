/// One way in which a crash can leave a disk: what became of each change that was pending.
///
/// Its ``description`` is short, and `init(_:)` reads it back, so that a failing state fits into
/// the one line that reproduces it.
public struct CrashState: Sendable, Hashable, CustomStringConvertible {
  /// What a torn write has in place of what did not reach the disk.
  public enum Rest: Sendable, Hashable {
    /// What was there before; the file ends where the write was cut, if it was at the end.
    case absent
    /// What was there before, and zeros up to the write's end: the size was first.
    case extended
    /// Random bytes, from this seed, up to the write's end.
    case garbage(seed: UInt64)
  }

  /// What became of one change.
  public enum Fate: Sendable, Hashable {
    /// It is there in whole.
    case kept
    /// It never happened.
    case dropped
    /// Of a write, the first `count` bytes are there. Any other change: dropped.
    case torn(count: Int, rest: Rest)
    /// Of a write, those sectors of `size` bytes are there whose bit is set, counted from the one
    /// that it begins in; `extends` says whether the file is as long as the whole write makes it.
    /// Past the 64th the bits go on at random from the mask. Any other change: dropped.
    case sectors(size: Int, mask: UInt64, extends: Bool)
    /// Of a rename, both names are there. Any other change: kept.
    case doubled
  }

  /// One fate for each pending change of a ``CrashPoint``, in the order of the calls; what is
  /// missing at the end counts as dropped.
  public var fates: [Fate]

  /// The state in which the pending changes met these fates.
  public init(_ fates: [Fate]) {
    self.fates = fates
  }

  /// The fates as text, such as `k,d,t17,t17+,t17~9,s512:5,s512:5+,b`.
  public var description: String {
    fates.map { fate in
      switch fate {
      case .kept: "k"
      case .dropped: "d"
      case .torn(let count, .absent): "t\(count)"
      case .torn(let count, .extended): "t\(count)+"
      case .torn(let count, .garbage(let seed)): "t\(count)~\(seed)"
      case .sectors(let size, let mask, let extends):
        "s\(size):\(String(mask, radix: 16))\(extends ? "+" : "")"
      case .doubled: "b"
      }
    }.joined(separator: ",")
  }

  /// Reads a ``description``; nil when it is none.
  public init?(_ description: String) {
    fates = []
    for part in description.split(separator: ",") {
      guard let fate = Fate(part) else { return nil }
      fates.append(fate)
    }
  }
}

extension CrashState.Fate {
  fileprivate init?(_ text: Substring) {
    let body = text.dropFirst()
    let isExtended = body.last == "+"
    switch text.first {
    case "k" where body.isEmpty: self = .kept
    case "d" where body.isEmpty: self = .dropped
    case "b" where body.isEmpty: self = .doubled
    case "t":
      let parts = (isExtended ? body.dropLast() : body).split(
        separator: "~", omittingEmptySubsequences: false)
      guard let count = parts.first.flatMap({ Int($0) }), count >= 0 else { return nil }
      switch parts.count {
      case 1: self = .torn(count: count, rest: isExtended ? .extended : .absent)
      case 2:
        guard !isExtended, let seed = UInt64(parts[1]) else { return nil }
        self = .torn(count: count, rest: .garbage(seed: seed))
      default: return nil
      }
    case "s":
      let parts = (isExtended ? body.dropLast() : body).split(separator: ":")
      guard parts.count == 2, let size = Int(parts[0]), size > 0,
        let mask = UInt64(parts[1], radix: 16)
      else { return nil }
      self = .sectors(size: size, mask: mask, extends: isExtended)
    default: return nil
    }
  }
}
