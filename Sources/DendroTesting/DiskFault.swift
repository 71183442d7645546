import DendroStorage

/// A failure to inject into a ``SimulatedDisk``: which call, once or for good, and how it fails.
///
/// ```swift
/// disk.inject(.failure(of: .write, at: 3, with: ENOSPC))       // the third write from now on
/// disk.inject(.failedSynchronize(at: 1, pages: .reverted))     // the next synchronize
/// disk.inject(DiskFault(.short(1), of: [.read], at: 1, isPermanent: true))
/// ```
public struct DiskFault: Sendable, CustomStringConvertible {
  /// What the file's cached pages hold after a failed synchronize (Rebello et al., ATC 2020).
  public enum Pages: String, Sendable, Hashable, CaseIterable {
    /// The new content, marked clean (ext4, XFS): reads show what the disk may not have.
    case kept
    /// The content from before (Btrfs).
    case reverted
  }

  /// How the call fails.
  public enum Effect: Sendable, Hashable {
    /// It does nothing and fails with this `errno`.
    case error(Int32)
    /// A read or write handles at most so many bytes, at least one, and succeeds.
    case short(Int)
    /// A write handles so many bytes and yet fails with this `errno`.
    case partial(Int, Int32)
    /// A synchronize fails with `EIO`, and what was pending may be on the disk or not, for ever.
    case failedSynchronize(Pages)
  }

  /// How the call fails.
  public var effect: Effect
  /// Which calls are counted and can fail; nil for all.
  public var kinds: Set<DiskOperation.Kind>?
  /// Only calls on paths with this in them are counted; nil for all.
  public var pathPart: String?
  /// The number of the call that fails, counted from the injection on; 1 is the next one.
  public var number: Int
  /// Whether every later such call fails too.
  public var isPermanent: Bool

  /// A fault of the `number`-th call of the given kinds.
  public init(
    _ effect: Effect, of kinds: Set<DiskOperation.Kind>? = nil, at number: Int,
    isPermanent: Bool = false, pathPart: String? = nil
  ) {
    self.effect = effect
    self.kinds = kinds
    self.number = number
    self.isPermanent = isPermanent
    self.pathPart = pathPart
  }

  /// The `number`-th call of one kind, or of all, fails with `errno`.
  public static func failure(
    of kind: DiskOperation.Kind? = nil, at number: Int, with errno: Int32, isPermanent: Bool = false
  ) -> DiskFault {
    DiskFault(.error(errno), of: kind.map { [$0] }, at: number, isPermanent: isPermanent)
  }

  /// The `number`-th synchronize of a file fails.
  public static func failedSynchronize(
    at number: Int, pages: Pages, isPermanent: Bool = false
  ) -> DiskFault {
    DiskFault(
      .failedSynchronize(pages), of: [.synchronize], at: number, isPermanent: isPermanent)
  }

  /// Says all of it, for the message of a failing test.
  public var description: String {
    let calls = kinds.map { $0.map(\.rawValue).sorted().joined(separator: "|") } ?? "call"
    let place = pathPart.map { " on *\($0)*" } ?? ""
    return "\(calls) \(number)\(place)\(isPermanent ? " and on" : ""): \(effect)"
  }
}

/// A fault and how many of its calls it has seen.
struct ArmedFault: Sendable {
  let fault: DiskFault
  var seen = 0

  /// The effect on this call, if it is the one.
  mutating func strikes(_ kind: DiskOperation.Kind, _ path: String) -> DiskFault.Effect? {
    if let kinds = fault.kinds, !kinds.contains(kind) { return nil }
    if let part = fault.pathPart, !Self.contains(path, part) { return nil }
    seen += 1
    guard seen == fault.number || (fault.isPermanent && seen > fault.number) else { return nil }
    return fault.effect
  }

  private static func contains(_ path: String, _ part: String) -> Bool {
    let (path, part) = (Array(path.utf8), Array(part.utf8))
    guard part.count <= path.count else { return false }
    return (0...path.count - part.count).contains { path[$0..<$0 + part.count].elementsEqual(part) }
  }
}
