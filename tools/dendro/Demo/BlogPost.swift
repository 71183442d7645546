/// A post of the demonstration's blog; its content follows from its author and number, so that it can
/// be told from the record alone.
struct BlogPost {
  var author: String
  var number: Int

  var title: String { "Post \(number) of \(author)" }
  var body: String {
    "What \(author) wrote as number \(number): " + String(repeating: "words and words, ", count: 4)
      + "and an end."
  }
}
