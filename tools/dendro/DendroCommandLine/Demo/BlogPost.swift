/// A post of the demonstration's blog. Its content follows from its author and number, so that the record
/// needs only these.
struct BlogPost {
  var author: String
  var number: Int

  var title: String { "Post \(number) of \(author)" }
  var body: String {
    "What \(author) wrote as number \(number): " + String(repeating: "words and words, ", count: 4)
      + "and an end."
  }
}
