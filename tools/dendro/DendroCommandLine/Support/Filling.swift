extension String {
  /// The text in lines of at most so many columns, broken at spaces. A word that is longer has a line of its own.
  ///
  /// - Parameters:
  ///   - start: the columns of the first line that are taken already.
  ///   - hanging: the spaces that the lines after the first begin with.
  func filled(to columns: Int, behind start: Int = 0, hanging: Int = 0) -> String {
    split(separator: "\n", omittingEmptySubsequences: false).map { line in
      String(line).filledLine(to: columns, behind: start, hanging: hanging)
    }.joined(separator: "\n")
  }

  private func filledLine(to columns: Int, behind start: Int, hanging: Int) -> String {
    guard start + shownColumnCount > columns else { return self }
    let indent = String(repeating: " ", count: hanging)
    var lines: [String] = []
    var line = String(prefix { $0 == " " })
    var width = start + line.count
    var hasWord = false
    var gap = 0
    for word in drop(while: { $0 == " " }).split(separator: " ", omittingEmptySubsequences: false) {
      // Two spaces in a row have an empty word between them.
      if word.isEmpty {
        gap += 1
        continue
      }
      let space = hasWord ? gap + 1 : 0
      let word = String(word)
      if hasWord, width + space + word.shownColumnCount > columns {
        lines.append(line)
        (line, width) = (indent + word, hanging + word.shownColumnCount)
      } else {
        line += String(repeating: " ", count: space) + word
        width += space + word.shownColumnCount
      }
      hasWord = true
      gap = 0
    }
    return (lines + [line]).joined(separator: "\n")
  }
}
