import DendroTree

/// How the text of an import is written, and what becomes of its records.
struct ImportFormat {
  enum Kind: Equatable {
    case json, lines
    case separated(by: UInt8)
  }

  let kind: Kind
  /// For errors.
  private let fileName: String
  /// The field that has a record's key; nil for its number.
  let keyField: String?
  let escapesKeys: Bool
  /// Whether every field of a separated text is a string.
  let keepsStrings: Bool
  /// Whether the last one of several records with the same key counts.
  private let lastWins: Bool

  init(_ arguments: Arguments) throws {
    let word = arguments.positional[2]
    fileName = word == "-" ? "standard input" : word
    let file = word.lowercased()
    let known = ["json", "lines", "csv", "tsv"]
    let name: String
    if let given = arguments.value("format") {
      name = given
    } else {
      let endings = ["jsonl": "lines", "ndjson": "lines", "csv": "csv", "tsv": "tsv"]
      name = file.split(separator: ".").last.flatMap { endings[String($0)] } ?? "json"
    }
    switch name {
    case "json": kind = .json
    case "lines": kind = .lines
    case "csv": kind = .separated(by: UInt8(ascii: ","))
    case "tsv": kind = .separated(by: UInt8(ascii: "\t"))
    default:
      throw Failure.usage(
        "--format takes \(known.joined(separator: ", ")), not \(Failure.quoted(name))")
    }
    keyField = arguments.value("key")
    escapesKeys = arguments.has("escape-keys")
    keepsStrings = arguments.has("strings")
    lastWins = arguments.has("last-wins")
    if kind == .json, keyField != nil {
      throw Failure.usage("--key is for lines of JSON and for CSV")
    }
    if lastWins, keyField == nil { throw Failure.usage("--last-wins needs --key") }
    if keepsStrings, case .separated = kind {
    } else if keepsStrings {
      throw Failure.usage("--strings is for CSV")
    }
  }

  /// Parses a text in pieces, as `JSONParser` does: each record of lines or CSV is one.
  func parse(
    depth: Int, pieceBytes: Int, source: @escaping (UnsafeMutableRawBufferPointer) throws -> Int,
    yield: @escaping (ImportPiece) throws -> Void
  ) throws {
    do {
      switch kind {
      case .json:
        try JSONParser.parse(
          depth: depth, escapesKeys: escapesKeys, pieceBytes: pieceBytes, source: source,
          yield: { piece in
            try yield(
              ImportPiece(
                path: piece.path, content: piece.content, byteCount: piece.byteCount))
          })
      case .lines: try parseLines(depth, source, yield)
      case .separated(let separator): try parseSeparated(separator, depth, source, yield)
      }
    } catch let error as Malformed {
      throw Failure(
        .badInput, "\(fileName)\(error.line.map { ", line \($0)" } ?? ""): \(error.problem)",
        hint: error.hint)
    }
  }

  func key(_ text: String) throws(ValidationError) -> Key {
    escapesKeys ? try Key(escaping: Array(text.utf8)) : try Key(text)
  }

  // MARK: Lines

  private func parseLines(
    _ depth: Int, _ source: @escaping (UnsafeMutableRawBufferPointer) throws -> Int,
    _ yield: (ImportPiece) throws -> Void
  ) throws {
    var number = 0
    var recordKeys = keys()
    try TextLines(source).forEach { line, lineNumber in
      guard line.contains(where: { $0 != 0x20 && $0 != 0x09 }) else { return }
      do {
        let node = try line.withUnsafeBytes { bytes throws(JSONError) in
          try JSONParser.parse(bytes, depth: depth + 1, escapesKeys: escapesKeys)
        }
        let piece = try self.piece(node, number, line.count, fieldKey: { try key($0) })
        try recordKeys?.append(piece.path, line: lineNumber)
        number += 1
        try yield(piece)
      } catch let error as ValidationError {
        throw Malformed(line: lineNumber, problem: error.message)
      } catch let error as JSONError {
        let place = error.path == "/" ? "" : ", at \(error.path)"
        throw Malformed(
          line: lineNumber, problem: "column \(error.position.column)\(place): \(error.message)")
      } catch let error as Malformed {
        throw Malformed(line: lineNumber, problem: error.problem, hint: error.hint)
      }
    }
  }

  /// A record that cannot be used.
  struct Malformed: Error {
    var line: Int?
    var problem: String
    var hint: String?
  }

  /// The keys of the records of a text, if none may come twice.
  private func keys() -> RecordKeys? { keyField == nil || lastWins ? nil : RecordKeys() }

  /// The piece of a record.
  private func piece(
    _ node: Node, _ number: Int, _ byteCount: Int, fieldKey: (String) throws -> Key
  ) throws -> ImportPiece {
    let name: String
    if let keyField {
      switch node.child(try fieldKey(keyField)).scalar {
      case .string(let text): name = text
      case .integer(let value): name = "\(value)"
      case .double, .bool, .bytes: throw Malformed(problem: "'\(keyField)' is no key")
      case nil: throw Malformed(problem: "'\(keyField)' is missing")
      }
    } else {
      name = "\(number)"
    }
    return ImportPiece(
      path: Path(keys: [try key(name)]), content: .node(node), byteCount: byteCount)
  }

  // MARK: CSV

  private func parseSeparated(
    _ separator: UInt8, _ depth: Int,
    _ source: @escaping (UnsafeMutableRawBufferPointer) throws -> Int,
    _ yield: (ImportPiece) throws -> Void
  ) throws {
    var names: [Key]?
    var number = 0
    var recordKeys = keys()
    try SeparatedRecords(source, separator: separator).forEach { fields, byteCount, lineNumber in
      do {
        guard let keys = names else {
          names = try header(fields)
          return
        }
        guard fields.count == keys.count else {
          throw Malformed(problem: "\(fields.count) fields, where the first line has \(keys.count)")
        }
        var children: [(Key, Node)] = []
        for (key, field) in zip(keys, fields) where !field.text.isEmpty || field.isQuoted {
          children.append((key, Node(value(field))))
        }
        var builder = NodeBuilder()
        for (key, node) in children.sorted(by: { $0.0 < $1.0 }) { builder.append(key, node) }
        let piece = try self.piece(
          builder.finish(), number, byteCount, fieldKey: { try key($0) })
        try recordKeys?.append(piece.path, line: lineNumber)
        number += 1
        try yield(piece)
      } catch let error as ValidationError {
        throw Malformed(line: lineNumber, problem: error.message)
      } catch let error as Malformed {
        throw Malformed(line: lineNumber, problem: error.problem, hint: error.hint)
      }
    }
  }

  private func header(_ fields: [SeparatedRecords.Field]) throws -> [Key] {
    let keys = try fields.map { try key($0.text) }
    if let twice = Dictionary(grouping: keys, by: \.self).first(where: { $0.value.count > 1 }) {
      throw Malformed(problem: "the name '\(twice.key)' comes twice")
    }
    if let keyField, !keys.contains(try key(keyField)) {
      throw Malformed(problem: "there is no field '\(keyField)'")
    }
    return keys
  }

  /// A number or a boolean if the text is written like one, unless digits would be lost.
  private func value(_ field: SeparatedRecords.Field) -> Scalar {
    guard !keepsStrings, !field.isQuoted, let first = field.text.utf8.first,
      first == UInt8(ascii: "-") || (0x30...0x39).contains(first)
        || ["true", "false"].contains(field.text),
      let scalar = try? JSONParser.parse(field.text).scalar
    else { return .string(field.text) }
    if case .double = scalar, !field.text.contains(where: { ".eE".contains($0) }) {
      return .string(field.text)
    }
    return scalar
  }
}
