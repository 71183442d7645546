/// The words of a line: separated by spaces, with '…', "…" and \ as in a shell.
enum ShellWords {
  static func split(_ line: String) throws -> [String] {
    var words: [String] = []
    var word: String?
    var quote: Character?
    var isEscaped = false
    for character in line {
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
    if let quote { throw Failure.usage("the quotation mark \(quote) is not closed") }
    if let word { words.append(word + (isEscaped ? "\\" : "")) }
    return words
  }
}
