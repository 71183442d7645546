/// What PostgreSQL, or the line to it, has said instead of an answer.
enum PostgresError: Error, Hashable, CustomStringConvertible {
  /// The address is none that libpq can read.
  case badAddress(String)
  /// libpq cannot be opened.
  case noLibrary(String)
  /// There is no connection: nothing was sent.
  case unreachable(String)
  /// The connection broke during a statement: it may have been done.
  case lost(String)
  /// There was no answer for so long: the statement may have been done.
  case timedOut(Duration)
  /// The program gave up waiting: the statement may have been done.
  case interrupted
  /// The statement was done, and PostgreSQL warns that standbys may not have it.
  case unreplicated(String)
  /// The statement was not done, for the reason with this SQLSTATE.
  case refused(state: String, message: String)
  /// The answer is not one that the statement can have.
  case malformed(String)

  /// Whether it is not known if the statement was done.
  var isUndecided: Bool {
    switch self {
    case .lost, .timedOut, .interrupted, .unreplicated: true
    case .badAddress, .noLibrary, .unreachable, .refused, .malformed: false
    }
  }

  /// Whether PostgreSQL has taken a statement and gives no answer that counts, as without its standby. A connection that
  /// was lost may be made again at once.
  var isSilence: Bool {
    switch self {
    case .timedOut, .unreplicated: true
    case .badAddress, .noLibrary, .unreachable, .lost, .interrupted, .refused, .malformed: false
    }
  }

  var description: String {
    switch self {
    case .badAddress(let reason): "the address of PostgreSQL is not valid: \(reason)"
    case .noLibrary(let reason):
      "libpq, the client library of PostgreSQL, cannot be opened: \(reason)"
    case .unreachable(let reason): "PostgreSQL cannot be reached: \(reason)"
    case .lost(let reason): "the connection to PostgreSQL is lost: \(reason)"
    case .timedOut(let limit): "PostgreSQL has not answered within \(limit)"
    case .interrupted: "the wait for PostgreSQL was ended"
    case .unreplicated(let warning): "PostgreSQL warns: \(warning)"
    case .refused(let state, let message): "PostgreSQL refuses (\(state)): \(message)"
    case .malformed(let reason): "PostgreSQL has given an unexpected answer: \(reason)"
    }
  }
}
