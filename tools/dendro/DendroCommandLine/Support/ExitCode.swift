/// The exit status of the process; the values above 2 are those of `sysexits.h`.
enum ExitCode: Int32 {
  case success = 0
  /// Nothing was found, or a check failed.
  case problem = 1
  /// The database's files are damaged.
  case damaged = 2
  case usage = 64
  /// Input data that the database does not take.
  case badInput = 65
  case unavailable = 69
  case inputOutput = 74
  /// Another process holds the database.
  case locked = 75
  /// Ended in order by a signal: the process returns 128 and the signal's number, as shells report it,
  /// which is this for Ctrl-C and 143 for SIGTERM.
  case interrupted = 130
}
