package import DendroTree

/// How long a write of a request may take, as it is estimated before it begins.
package enum WriteSizeLimit: String, Sendable, CaseIterable {
  case tiny, small, medium, large, unlimited

  /// In seconds; nil for any time.
  private var seconds: Int? {
    switch self {
    case .tiny: 1
    case .small: 10
    case .medium: 30
    case .large: 60
    case .unlimited: nil
    }
  }

  /// So many values, and so many bytes of text, are one second each. Numbers in a flat list were measured at 0.9 s of processor
  /// time for a million, and strings of 2,000 bytes at 0.8 s for 100 MiB.
  private static let valuesASecond = 1_000_000
  private static let bytesASecond = 128 << 20

  /// The largest body whose write is within every limit: a value takes at least two bytes of text.
  package static let freeByteCount = 2 * valuesASecond

  /// Whether a write is estimated to take longer.
  ///
  /// - Parameter byteCount: the size of the request's body.
  /// - Complexity: O(pages of the values), for a body that may have so many.
  package func isExceeded(by draft: Draft, byteCount: Int) -> Bool {
    guard let seconds, byteCount > seconds * Self.freeByteCount else { return false }
    let milliseconds =
      1000 * draft.valueCount / Self.valuesASecond + 1000 * byteCount / Self.bytesASecond
    return milliseconds > 1000 * seconds
  }

  /// The limit that a text of JSON names; nil for anything else.
  package init?(json text: String) {
    guard case .string(let name)? = (try? JSONParser.parse(text))?.scalar else { return nil }
    self.init(rawValue: name)
  }

  /// The names, for a sentence.
  package static let names = "tiny, small, medium, large or unlimited"
}

extension Draft {
  /// The values that are written.
  fileprivate var valueCount: Int {
    switch write {
    case .set(_, let node): node.leafCount()
    case .remove, .increment, .setPriority: 1
    case .update(_, let entries):
      entries.reduce(0) { count, entry in
        if case .set(let node) = entry.action { count + node.leafCount() } else { count + 1 }
      }
    }
  }
}
