/// Why a server could not be started.
public struct DatabaseServerError: Error, Sendable, CustomStringConvertible {
  /// One sentence.
  public let message: String

  init(_ message: String) { self.message = message }

  /// The message.
  public var description: String { message }
}
