extension String {
  /// The columns of a terminal that the text takes.
  var columnCount: Int { unicodeScalars.reduce(0) { $0 + Self.width(of: $1) } }

  /// The columns of a text that may have colours.
  var shownColumnCount: Int {
    guard utf8.contains(0x1B) else { return columnCount }
    return replacing(/\u{1B}\[[0-9;]*m/, with: "").columnCount
  }

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

  /// The text in lines that fit, broken behind commas as far as there are any.
  func wrapped(toColumns columns: Int) -> [String] {
    var lines: [String] = []
    var line = ""
    for part in split(separator: ", ", omittingEmptySubsequences: false).map(String.init) {
      let longer = line.isEmpty ? part : "\(line), \(part)"
      if !line.isEmpty, longer.columnCount + 1 > columns {
        lines.append(line + ",")
        line = part
      } else {
        line = longer
      }
    }
    return lines + [line]
  }

  func paddedToColumns(_ columns: Int) -> String {
    self + String(repeating: " ", count: max(0, columns - columnCount))
  }

  /// As terminals have it: 2 for East Asian wide characters and emoji, 0 for what combines.
  static func width(of scalar: Unicode.Scalar) -> Int {
    if scalar.value < 0x300 { return 1 }
    if scalar.properties.generalCategory.isCombining { return 0 }
    if scalar.value < 0x1100 { return 1 }
    return wide.contains { $0.contains(scalar.value) } ? 2 : 1
  }

  /// Of Unicode's EastAsianWidth.txt those that are wide, with their neighbours if these are rare.
  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x231A...0x231B, 0x23E9...0x23EC, 0x23F0...0x23F0, 0x23F3...0x23F3,
    0x25FD...0x25FE, 0x2614...0x2615, 0x2648...0x2653, 0x267F...0x267F, 0x2693...0x2693,
    0x26A1...0x26A1, 0x26AA...0x26AB, 0x26BD...0x26BE, 0x26C4...0x26C5, 0x26CE...0x26CE,
    0x26D4...0x26D4, 0x26EA...0x26EA, 0x26F2...0x26F3, 0x26F5...0x26F5, 0x26FA...0x26FA,
    0x26FD...0x26FD, 0x2705...0x2705, 0x270A...0x270B, 0x2728...0x2728, 0x274C...0x274C,
    0x274E...0x274E, 0x2753...0x2755, 0x2757...0x2757, 0x2795...0x2797, 0x27B0...0x27B0,
    0x27BF...0x27BF, 0x2B1B...0x2B1C, 0x2B50...0x2B50, 0x2B55...0x2B55, 0x2E80...0x303E,
    0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
    0xFFE0...0xFFE6, 0x1F004...0x1F004, 0x1F0CF...0x1F0CF, 0x1F18E...0x1F18E, 0x1F191...0x1F19A,
    0x1F200...0x1F265, 0x1F300...0x1FAFF, 0x20000...0x3FFFD,
  ]
}

extension Unicode.GeneralCategory {
  fileprivate var isCombining: Bool {
    self == .nonspacingMark || self == .enclosingMark || self == .format
  }
}
