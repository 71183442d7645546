/// Why a text was refused, and where: rules, claims or tests of rules.
///
/// The messages about rules are those of the Realtime Database, word for word, wherever they are known.
public struct RuleTextError: Error, Hashable, Sendable {
  /// Where reading stopped.
  public let position: TextPosition
  /// What is wrong: one sentence without the position.
  public let message: String

  /// Makes the error of a position.
  public init(_ message: String, at position: TextPosition) {
    self.message = message
    self.position = position
  }
}

extension RuleTextError: CustomStringConvertible {
  /// The position and the message, as the REST API shows them: `3:14: Unknown variable 'foo'.`
  public var description: String { "\(position): \(message)" }
}

/// An error at an offset of the text. With the text it becomes a ``RuleTextError``.
struct TextFailure: Error {
  let message: String
  let offset: Int

  init(_ message: String, at offset: Int) {
    self.message = message
    self.offset = offset
  }

  func error(in bytes: [UInt8]) -> RuleTextError {
    RuleTextError(message, at: PositionTable(bytes).position(of: offset))
  }
}
