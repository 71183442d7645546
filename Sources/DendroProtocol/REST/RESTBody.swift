package import DendroTree

/// Reads what a request wants written.
package enum RESTBody {
  /// - Parameters:
  ///   - bytes: the body.
  ///   - path: where a POST puts its child; for the others the request's own path.
  /// - Returns: the write; its paths and depth are still to be checked, by `Write.validate()`.
  /// - Throws: `RESTError` with the text that clients know.
  package static func draft(
    _ request: RESTRequest, _ bytes: UnsafeRawBufferPointer, at path: Path
  ) throws(RESTError) -> Draft {
    if request.method == .delete {
      if case .priority = request.resource { return Draft(.setPriority(path, nil)) }
      return Draft(.remove(path))
    }
    guard bytes.contains(where: { $0 > UInt8(ascii: " ") }) else {
      throw .badRequest("Error: No data supplied.")
    }
    do throws(JSONError) {
      if case .priority = request.resource {
        return try JSONParser.parseDraft(settingPriority: bytes, at: path)
      }
      return request.method == .patch
        ? try JSONParser.parseDraft(updating: bytes, at: path)
        : try JSONParser.parseDraft(setting: bytes, at: path)
    } catch {
      throw refusal(error, bytes, isPatch: request.method == .patch)
    }
  }

  private static func refusal(
    _ error: JSONError, _ bytes: UnsafeRawBufferPointer, isPatch: Bool
  ) -> RESTError {
    let place = "\(error.position.line):\(error.position.column)"
    switch error.kind {
    case .data(.invalidKey), .data(.invalidPath):
      return .badRequest(
        "Invalid data; couldn't parse key beginning at \(place). Key value can't be empty or "
          + "contain $ # [ ] / or .")
    case .syntax:
      if isPatch { return noObject }
      let text = "Invalid data; couldn't parse JSON object, array, or value."
      // A key without quotation marks, or with signs that no key has, is what is wrong most often.
      let first = bytes.first { $0 > UInt8(ascii: " ") }
      let hasKeys = first == UInt8(ascii: "{")
      return .badRequest(
        hasKeys ? text + " Perhaps you're using invalid characters in your key names." : text)
    case .data:
      let first = bytes.first { $0 > UInt8(ascii: " ") }
      if isPatch, first != UInt8(ascii: "{") { return noObject }
      return .badRequest("Invalid data; \(error.message) at \(place).")
    }
  }

  private static let noObject = RESTError.badRequest(
    "Invalid data; couldn't parse JSON object. Are you sending a JSON object with valid key names?")

  /// A JSON text without the white space between its tokens.
  package static func compact(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    var isString = false
    var isEscaped = false
    for byte in bytes {
      if isString {
        result.append(byte)
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isString = false
        }
      } else if byte > UInt8(ascii: " ") {
        result.append(byte)
        isString = byte == UInt8(ascii: "\"")
      }
    }
    return result
  }

  /// JSON with each entry on its own line, as values are written with `print=pretty`.
  package static func pretty(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    let text = compact(bytes)
    var result: [UInt8] = []
    var depth = 0
    func line() {
      result.append(UInt8(ascii: "\n"))
      result += repeatElement(UInt8(ascii: " "), count: 2 * depth)
    }
    var (isString, isEscaped) = (false, false)
    for (index, byte) in text.enumerated() {
      guard !isString else {
        result.append(byte)
        isString = isEscaped || byte != UInt8(ascii: "\"")
        isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
        continue
      }
      let before = index > 0 ? text[index - 1] : 0
      let isOpening = before == UInt8(ascii: "{") || before == UInt8(ascii: "[")
      switch byte {
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if !isOpening { line() }
      case _ where isOpening: line()
      default: break
      }
      result.append(byte)
      switch byte {
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: ","): line()
      case UInt8(ascii: ":"): result.append(UInt8(ascii: " "))
      case UInt8(ascii: "\""): isString = true
      default: break
      }
    }
    return result
  }
}
