import DendroTree

/// The words of a line: separated by spaces, with '…', "…" and \ as in a shell.
struct ShellWords {
  /// Those that are complete.
  private(set) var words: [String] = []
  /// What is written of the last one; nil behind a space.
  private(set) var word: String?
  /// The quotation mark that is not closed.
  private(set) var quote: Character?
  private var isEscaped = false

  /// The words of a whole line.
  static func split(_ line: String) throws -> [String] {
    let line = ShellWords(line)
    if let quote = line.quote {
      throw Failure.usage("the quotation mark \(quote) is not closed")
    }
    return line.words + (line.word.map { [$0 + (line.isEscaped ? "\\" : "")] } ?? [])
  }

  /// The words of a line that may go on.
  init(_ line: String) {
    for character in line { take(character) }
  }

  private mutating func take(_ character: Character) {
    if isEscaped {
      // In double quotes only the quote and the backslash itself need one.
      if quote == "\"", character != "\"", character != "\\" { word = (word ?? "") + "\\" }
      word = (word ?? "") + String(character)
      isEscaped = false
    } else if character == "\\", quote != "'", quote != nil || word != nil {
      isEscaped = true
    } else if let open = quote {
      if character == open { quote = nil } else { word?.append(character) }
    } else if character == "'" || character == "\"" {
      quote = character
      word = word ?? ""
    } else if character == " " || character == "\t" {
      if let found = word { words.append(found) }
      word = nil
    } else {
      word = (word ?? "") + String(character)
    }
  }

  // MARK: Completion

  /// How words are written that begin with what there is of the last one.
  ///
  /// - Parameter found: the words. One that ends with a slash may go on.
  /// - Returns: what takes the place of the rest of the line.
  func completions(_ found: [String]) -> [String] {
    let start = word ?? ""
    let rests = found.filter { $0.startsLiterally(with: start) }.map { word in
      (
        text: String(decoding: word.utf8.dropFirst(start.utf8.count), as: UTF8.self),
        isWhole: !word.hasSuffix("/")
      )
    }
    // A backslash at the beginning of a word is one. Where some words need a mark and some do not, their beginning has none.
    let opens =
      word == nil && !rests.isEmpty
      && rests.allSatisfy { $0.text.contains { " \t'\"\\".contains($0) } }
    let mark = opens ? "\"" : quote
    return rests.map { rest in
      var text = opens ? "\"" : ""
      for (index, character) in rest.text.enumerated() {
        // The line ends with the backslash of the first one.
        let isWritten = index == 0 && isEscaped
        switch (mark, character) {
        case ("'", "'"): text += "'\\''"
        case ("\"", "\""), ("\"", "\\"): text += isWritten ? "\(character)" : "\\\(character)"
        case (nil, " "), (nil, "\t"), (nil, "'"), (nil, "\""), (nil, "\\"):
          text += isWritten ? "\(character)" : "\\\(character)"
        default: text.append(character)
        }
      }
      return text + (rest.isWhole ? mark.map { "\($0)" } ?? "" : "")
    }
  }
}
