import DendroTree
import Foundation

/// Makes a write at a path, on the caller's thread, and lends it to the second parameter for the time of that call.
typealias WriteMaking = (Path, (WriteView) -> Void) throws(ValidationError) -> Void

/// Makes the writes that values from outside ask for. Each is lent to `use` for the time of that call.
enum Writes {
  /// `setValue(_:)`.
  static func set(
    _ value: Any?, at path: Path, _ use: (WriteView) -> Void
  ) throws(ValidationError) {
    var reader = ValueReader(at: path)
    if let value { try reader.read(value) }
    try reader.builder.withSet(at: path, use)
  }

  /// `setValue(_:andPriority:)`: a `.priority` in the value wins; nothing has no priority, so it is not
  /// even looked at then.
  static func set(
    _ value: Any?, priority: Any?, at path: Path, _ use: (WriteView) -> Void
  ) throws(ValidationError) {
    var reader = ValueReader(at: path)
    let mark = reader.builder.mark
    if let value { try reader.read(value) }
    if !reader.builder.isEmpty(since: mark), !reader.hasOwnPriority {
      try reader.give(priority, to: mark)
    }
    try reader.builder.withSet(at: path, use)
  }

  static func set(
    _ scalar: Scalar, at path: Path, _ use: (WriteView) -> Void
  ) throws(ValidationError) {
    let reader = ValueReader(at: path)
    reader.append(try reader.place.checked(scalar))
    try reader.builder.withSet(at: path, use)
  }

  /// `setValue(from:)`.
  static func set(
    _ value: EncodedValue, at path: Path, _ use: (WriteView) -> Void
  ) throws(ValidationError) {
    var reader = ValueReader(at: path)
    try reader.readWhole(value)
    try reader.builder.withSet(at: path, use)
  }

  static func remove(
    at path: Path, _ use: (WriteView) -> Void
  ) throws(ValidationError) {
    try ValueReader(at: path).builder.withSet(at: path, use)
  }

  static func increment(
    _ delta: Number, at path: Path, _ use: (WriteView) -> Void
  ) throws(ValidationError) {
    guard delta.isFinite else {
      throw ValidationError(.invalidData, "The increment at \(path) is not a finite number.")
    }
    let builder = WriteBuilder()
    builder.append(.increment(delta))
    try builder.withSet(at: path, use)
  }

  /// `setPriority(_:)`.
  static func priority(
    _ priority: Any?, at path: Path, _ use: (WriteView) -> Void
  ) throws(ValidationError) {
    let reader = ValueReader(at: path)
    switch try reader.priority(priority) {
    case .nothing: break
    case .scalar(let scalar): reader.builder.append(scalar)
    case .serverValue(let value): reader.builder.append(value)
    }
    try reader.builder.withPriority(at: path, use)
  }

  /// `updateChildValues(_:)`: keys are paths, each of which is replaced.
  static func update(
    _ values: [String: Any], at path: Path, _ use: (WriteView) -> Void
  ) throws(ValidationError) {
    var reader = ValueReader(at: path)
    for (key, value) in values { try reader.entry(key, value, below: path) }
    try reader.builder.withUpdate(at: path, use)
  }

  static func update(
    _ values: [AnyHashable: Any], at path: Path, _ use: (WriteView) -> Void
  ) throws(ValidationError) {
    var reader = ValueReader(at: path)
    for (key, value) in values {
      guard let key = key.base as? String else {
        throw ValidationError(.invalidData, "the update path \(key.base) is not a string")
      }
      try reader.entry(key, value, below: path)
    }
    try reader.builder.withUpdate(at: path, use)
  }
}

extension ValueReader {
  /// Adds an entry of an update at a path.
  fileprivate mutating func entry(
    _ key: String, _ value: Any, below base: Path
  ) throws(ValidationError) {
    let parent = Self.parent(ofPriority: key)
    let keyCount: Int
    do throws(ValidationError) {
      keyCount = try builder.beginEntry(parent ?? key, parent == nil ? .set : .setPriority)
    } catch {
      throw ValidationError(
        .invalidData, "the update path \"\(key)\" cannot be used: \(error.message)")
    }
    place.outerDepth = base.count + keyCount
    do throws(ValidationError) {
      if parent == nil {
        try read(value)
      } else {
        try readPriority(value)
      }
    } catch {
      throw Self.located(error, below: base, parent ?? key) { (reader) throws(ValidationError) in
        if parent != nil {
          _ = try reader.priority(value)
        } else {
          try reader.read(value)
        }
      }
    }
    builder.endEntry()
  }

  /// Appends the priority that an entry of an update sets.
  mutating func readPriority(_ value: Any?) throws(ValidationError) {
    switch try priority(value) {
    case .nothing: builder.appendNoPriority()
    case .scalar(let scalar): builder.appendPriority { builder.append(scalar) }
    case .serverValue(let value): builder.appendPriority { builder.append(value) }
    }
  }

  /// The same error with its place, which is found out only now: by reading the value once more.
  static func located(
    _ error: ValidationError, below base: Path, _ path: String,
    _ read: (inout ValueReader) throws(ValidationError) -> Void
  ) -> ValidationError {
    guard let path = try? Path(parsing: path) else { return error }
    var reader = ValueReader(at: base.appending(path))
    do throws(ValidationError) {
      try read(&reader)
      return error
    } catch {
      return error
    }
  }

  /// The path before a last segment `.priority`; nil if there is none.
  private static func parent(ofPriority key: String) -> String? {
    // Nearly all strings are contiguous, and their last byte is at hand.
    let last = key.utf8.withContiguousStorageIfAvailable { $0.last } ?? key.utf8.last
    guard last == UInt8(ascii: "y") || last == UInt8(ascii: "/") else { return nil }
    var rest = Substring(key)
    while rest.utf8.last == UInt8(ascii: "/") { rest = Substring(rest.utf8.dropLast()) }
    return String(rest).pathOfPriority
  }
}

extension EncodedWrite {
  /// Makes a write, and keeps it.
  static func making(
    at path: Path, _ making: WriteMaking
  ) throws(ValidationError) -> EncodedWrite {
    var write: EncodedWrite?
    try making(path) { write = EncodedWrite.keeping($0) }
    guard let write else { preconditionFailure("a write was made") }
    return write
  }
}

extension Draft {
  /// Makes a write, and decodes it.
  init(at path: Path, _ making: WriteMaking) throws(ValidationError) {
    var draft: Draft?
    try making(path) { draft = Draft(decoding: $0) }
    guard let draft else { preconditionFailure("a write was made") }
    self = draft
  }
}
