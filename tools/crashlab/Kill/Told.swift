/// What a killed writer had said.
struct Told {
  var isOpen = false
  /// For each writer the last number.
  var acknowledged: [Int: Int] = [:]
  var failures: [String] = []

  init(_ bytes: [UInt8]) {
    // The last line may be cut: then it was not said.
    let whole = bytes[..<((bytes.lastIndex(of: 10) ?? -1) + 1)]
    for line in String(decoding: whole, as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ")
      if line == "open" {
        isOpen = true
      } else if words.count == 2, let writer = Int(words[0]), let number = Int(words[1]) {
        if let last = acknowledged[writer], number != last + 1 {
          failures.append("writer \(writer) was told \(number) after \(last)")
        }
        acknowledged[writer] = number
      } else {
        failures.append("the writer says: \(line)")
      }
    }
  }
}
