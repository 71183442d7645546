extension String {
  /// The columns of a terminal that the text takes.
  var columnCount: Int { unicodeScalars.reduce(0) { $0 + Self.width(of: $1) } }

  /// The text, or as much of its beginning as so many columns have room for with an ellipsis.
  func truncated(toColumns columns: Int) -> String {
    // Most are short.
    if utf8.count <= columns { return self }
    guard columnCount > columns else { return self }
    var text = String.UnicodeScalarView()
    var width = 0
    for scalar in unicodeScalars {
      width += Self.width(of: scalar)
      guard width < columns else { break }
      text.append(scalar)
    }
    return columns > 0 ? String(text) + "…" : ""
  }

  func paddedToColumns(_ columns: Int) -> String {
    self + String(repeating: " ", count: max(0, columns - columnCount))
  }

  /// As terminals have it: 2 for East Asian wide characters and emoji, 0 for what combines.
  static func width(of scalar: Unicode.Scalar) -> Int {
    if scalar.value < 0x300 { return 1 }
    if scalar.properties.generalCategory.isCombining { return 0 }
    return wide.contains { $0.contains(scalar.value) } ? 2 : 1
  }

  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
    0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD,
  ]
}

extension Unicode.GeneralCategory {
  fileprivate var isCombining: Bool {
    self == .nonspacingMark || self == .enclosingMark || self == .format
  }
}
