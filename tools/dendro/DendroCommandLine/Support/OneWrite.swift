import DendroEngine
import DendroStorage
import DendroTree

/// What the verbs that write one thing have in common.
enum OneWrite {
  /// More text than a write may have is refused before it fills the memory.
  static let textLimit = 512 << 20

  /// The JSON of a parameter: the text itself, or standard input for `-`.
  static func json<Result>(
    _ word: String, _ parse: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    if word == "-" {
      return try InputFile("-").readAll(limit: textLimit).withUnsafeBytes(parse)
    }
    var word = word
    do {
      return try word.withUTF8 { try parse(UnsafeRawBufferPointer($0)) }
    } catch let error as JSONError {
      var failure = Failure(describing: error)
      if let first = word.utf8.first, error.kind == .syntax, Self.isLetter(first) {
        failure.hint =
          "a string needs quotes of its own: '\"\(word.shortened(to: 80))\"', or --string"
      }
      throw failure
    }
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    byte >= 0x80 || (byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z"))
  }

  /// Prints the outcome of a write.
  static func report(
    _ lsn: LogSequenceNumber?, _ arguments: Arguments, more: [(String, JSONValue)] = [],
    line: String? = nil
  ) throws {
    do {
      try print(lsn, arguments, more, line)
    } catch var failure as Failure {
      if let lsn { failure.hint = "write \(lsn) was made all the same" }
      throw failure
    }
  }

  private static func print(
    _ lsn: LogSequenceNumber?, _ arguments: Arguments, _ more: [(String, JSONValue)],
    _ line: String?
  ) throws {
    let terminal = try Terminal(color: arguments.value("color"))
    if arguments.wantsJSON {
      try terminal.print(
        JSONValue.object(
          [
            ("lsn", lsn.map { .unsigned($0.rawValue) } ?? .null),
            ("changed", .bool(lsn != nil)),
          ] + more
        ).text)
    } else if let line {
      try terminal.print(line)
    } else {
      Terminal.note(lsn.map { "write \($0)" } ?? "nothing changed")
    }
    try terminal.flush()
  }

  /// The set of VALUE, or the change of a priority. It may have server values.
  static func draft(at location: Location, _ word: String, _ arguments: Arguments) throws
    -> Draft
  {
    let path = location.path
    if arguments.has("string") {
      guard word.utf8.count <= Limits.stringBytes else {
        throw Failure(.badInput, "the string is longer than \(Limits.stringBytes) bytes")
      }
      let scalar = Scalar.string(word)
      return Draft(location.isPriority ? .setPriority(path, scalar) : .set(path, Node(scalar)))
    }
    return try json(word) { text in
      if location.isPriority { return try JSONParser.parseDraft(settingPriority: text, at: path) }
      let draft = try JSONParser.parseDraft(setting: text, at: path)
      if case .set(_, let node) = draft.write, node.isEmpty { return Draft(.remove(path)) }
      return draft
    }
  }
}

extension Command.Parameter {
  static let value = Self(name: "VALUE", summary: "JSON; - reads standard input")
}

extension Command.Option {
  static let string = Self(
    name: "string", short: "s", summary: "VALUE is a string as it stands, not JSON")
}
