import DendroEngine
import DendroTree
public import Foundation

// What the JSON of the export form says is written with its priorities; `{".sv": "timestamp"}` is a server value. What is no
// JSON, or cannot be data, is refused before anything is written, with line and column.

extension DatabaseReference {
  /// Replaces everything here and below with what a JSON text says; `null` removes it. `setValue(_:)` of the text's value.
  ///
  /// - Throws: ``DatabaseError``: ``DatabaseError/Code/invalidArgument`` for what is no JSON; ``DatabaseError/Code/invalidKey``,
  ///   ``DatabaseError/Code/invalidData`` and so on for what cannot be data. ``DatabaseOptions/errorHandler`` gets what goes
  ///   wrong later.
  /// - Complexity: O(length · log children).
  public func setJSON(_ json: String) throws {
    write(try encoded(json, JSONParser.parseDraft(setting:at:)))
  }

  /// `setJSON(_:)`, and waits until the write is durable.
  @discardableResult
  public func setJSON(_ json: String) async throws -> DatabaseReference {
    try await commit(encoded(json, JSONParser.parseDraft(setting:at:)))
  }

  /// `setJSON(_:)` with what is in a file, as one write: all of it or nothing. Waits until it is durable.
  ///
  /// The text may make up to ``DatabaseOptions/writeByteLimit`` bytes of the log. `dendro import` reads larger files, in
  /// several writes.
  ///
  /// - Throws: also ``DatabaseError/Code/inputOutput`` if the file cannot be read, ``DatabaseError/Code/invalidArgument`` if
  ///   `url` is no file URL.
  @discardableResult
  public func setJSON(contentsOf url: URL) async throws -> DatabaseReference {
    try await commit(
      BackgroundThread.read { () throws(DatabaseError) in
        let path = try Database.path(of: url)
        do {
          let text = try Data(contentsOf: URL(fileURLWithPath: path))
          return try self.encoded(text, of: path, JSONParser.parseDraft(setting:at:))
        } catch {
          throw error as? DatabaseError ?? DatabaseError(error, "read", path)
        }
      })
  }

  /// Writes several paths at once, as `updateChildValues(_:)` does with the entries of a JSON object: its keys are paths.
  ///
  /// - Throws: as `setJSON(_:)` does.
  public func updateJSON(_ json: String) throws {
    write(try encoded(json, JSONParser.parseDraft(updating:at:)))
  }

  /// `updateJSON(_:)`, and waits until the write is durable.
  @discardableResult
  public func updateJSON(_ json: String) async throws -> DatabaseReference {
    try await commit(encoded(json, JSONParser.parseDraft(updating:at:)))
  }

  private typealias Parsing = (UnsafeRawBufferPointer, Path) throws(JSONError) -> Draft

  private func encoded(_ json: String, _ parse: Parsing) throws(DatabaseError) -> EncodedWrite {
    try encoded(Data(json.utf8), of: nil, parse)
  }

  /// The write that a text asks for.
  ///
  /// - Parameter file: what the text was read from.
  private func encoded(
    _ json: Data, of file: String?, _ parse: Parsing
  ) throws(DatabaseError) -> EncodedWrite {
    if let writeFailure { throw writeFailure }
    do {
      let draft = json.withUnsafeBytes { bytes in
        Result { () throws(JSONError) in try parse(bytes, location) }
      }
      return try EncodedWrite(validating: draft.get())
    } catch let error as JSONError {
      throw DatabaseError(error, at: location, file: file)
    } catch let error as ValidationError {
      throw DatabaseError(error)
    } catch {
      fatalError("parsing threw \(error)")
    }
  }

  private func write(_ write: EncodedWrite) { self.write { (_, use) in write.withView(use) } }
}

extension DatabaseError {
  /// What is wrong with a JSON text for a location.
  fileprivate init(_ error: JSONError, at location: Path, file: String?) {
    let text = file.map { "\($0), the JSON for \(location)" } ?? "the JSON for \(location)"
    let message = "\(text): \(error)"
    switch error.kind {
    case .syntax: self.init(.invalidArgument, "InvalidJSON", message, file: file)
    case .data(let kind):
      let refusal = DatabaseError(ValidationError(kind, message))
      self.init(refusal.code, refusal.name, message, file: file)
    }
  }

  /// Why a file of the application could not be read or written.
  init(_ error: any Error, _ operation: String, _ path: String) {
    let number = (error as? POSIXError)?.code.rawValue ?? Self.systemNumber(of: error)
    let reason = number.map { String(cString: strerror($0)) } ?? "\(error)"
    let isFull = number == ENOSPC || number == EDQUOT
    self.init(
      isFull ? .diskFull : .inputOutput, isFull ? "DiskFull" : "InputOutput",
      "cannot \(operation) \(path): \(reason)", file: path, cause: error)
  }

  /// The system's number of an error of Foundation.
  private static func systemNumber(of error: any Error) -> Int32? {
    let error = error as NSError
    if error.domain == NSPOSIXErrorDomain { return Int32(error.code) }
    guard let below = error.userInfo[NSUnderlyingErrorKey] as? any Error else { return nil }
    return systemNumber(of: below)
  }
}
