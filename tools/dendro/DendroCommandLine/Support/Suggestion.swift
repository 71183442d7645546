/// The candidate that was probably meant: fewest insertions, deletions, replacements and swaps of
/// neighbours away, at most a third of the word.
func suggestion(for word: String, among candidates: some Sequence<String>) -> String? {
  let limit = max(1, word.count / 3)
  var best: (candidate: String, distance: Int)?
  for candidate in candidates {
    let distance =
      candidate.hasPrefix(word) && word.count >= 2 ? 1 : editDistance(word, candidate)
    if distance <= limit, distance < best?.distance ?? .max { best = (candidate, distance) }
  }
  return best?.candidate
}

/// Optimal string alignment; words on a command line are short.
private func editDistance(_ first: String, _ second: String) -> Int {
  let a = Array(first.utf8)
  let b = Array(second.utf8)
  // A word this long is no misspelt verb, and the table would be large.
  guard a.count <= 64, b.count <= 64 else { return .max }
  var rows = [Array(0...b.count)]
  for i in 1..<(a.count + 1) {
    var row = [i]
    for j in 1..<(b.count + 1) {
      var distance = min(
        rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1))
      if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] {
        distance = min(distance, rows[i - 2][j - 2] + 1)
      }
      row.append(distance)
    }
    rows.append(row)
  }
  return rows[a.count][b.count]
}
