extension Unicode.Scalar {
  /// Whether a terminal may obey it instead of showing it.
  package var isTerminalControl: Bool {
    switch value {
    case 0..<0x20, 0x7F...0x9F: true
    // Ends of lines and paragraphs, and marks of direction.
    case 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }
}

extension String {
  /// The text on one line, with escapes in place of what a terminal may obey instead of showing it.
  var onOneLine: String {
    var result = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      if scalar.isTerminalControl {
        result += "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars
      } else {
        result.append(scalar)
      }
    }
    return String(result)
  }
}
