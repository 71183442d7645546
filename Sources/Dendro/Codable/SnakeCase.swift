import Foundation

/// `oneURLAndMore` as `one_url_and_more`, and back.
///
/// A word begins at a capital after anything else, and at the last of several capitals where a small
/// letter follows. Underscores at the beginning and the end stay.
enum SnakeCase {
  static func encode(_ name: String) -> String {
    let characters = Array(name)
    var words: [ArraySlice<Character>] = []
    var start = 0
    var searched = 1
    while searched < characters.count,
      let capital = characters[searched...].firstIndex(where: \.isUppercase)
    {
      words.append(characters[start..<capital])
      start = capital
      guard let small = characters[capital...].firstIndex(where: \.isLowercase) else { break }
      if small > capital + 1 {
        words.append(characters[capital..<small - 1])
        start = small - 1
      }
      searched = small + 1
    }
    words.append(characters[start...])
    return words.map { String($0).lowercased() }.joined(separator: "_")
  }

  static func decode(_ name: String) -> String {
    guard let first = name.firstIndex(where: { $0 != "_" }),
      let last = name.lastIndex(where: { $0 != "_" })
    else { return name }
    let words = name[first...last].split(separator: "_")
    guard words.count > 1 else { return name }
    // Foundation's capitals, which also follow digits: JSON's coders make the same names.
    let joined = words.dropFirst().reduce(words[0].lowercased()) { $0 + $1.capitalized }
    return name[..<first] + joined + name[name.index(after: last)...]
  }
}
