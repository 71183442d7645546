import DendroTree

/// The places of the records so far, each with the line in which its record begins. None may come twice: one record
/// would take the place of another.
struct RecordKeys {
  private var lines: [Path: Int] = [:]

  mutating func append(_ path: Path, line: Int) throws(ImportFormat.Malformed) {
    if let first = lines.updateValue(line, forKey: path) {
      throw ImportFormat.Malformed(
        problem: "the key '\(path.last?.string ?? "")' comes twice, first in line \(first)",
        hint: "--last-wins takes the last record of each key; without --key, the keys are numbers")
    }
  }
}
