/// The parsed output of a killed writer.
struct WriterOutput {
  var isOpen = false
  /// The last acknowledged number of each writer.
  var acknowledged: [Int: Int] = [:]
  var failures: [String] = []

  init(_ bytes: [UInt8]) {
    // The kill may have cut the last line, which does not count then.
    let whole = bytes[..<((bytes.lastIndex(of: 10) ?? -1) + 1)]
    for line in String(decoding: whole, as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ")
      if line == "open" {
        isOpen = true
      } else if words.count == 2, let writer = Int(words[0]), let number = Int(words[1]) {
        if let last = acknowledged[writer], number != last + 1 {
          failures.append(
            "writer \(writer) got the acknowledgement of \(number) after that of \(last)")
        }
        acknowledged[writer] = number
      } else {
        failures.append("unexpected output of the writer: \(line)")
      }
    }
  }
}
