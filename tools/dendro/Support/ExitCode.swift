/// What the process tells its caller; the values above 2 are those of `sysexits.h`.
enum ExitCode: Int32 {
  case success = 0
  /// Nothing was found, or something that was checked does not hold.
  case problem = 1
  /// The database's files are damaged.
  case damaged = 2
  case usage = 64
  /// Data that was handed in and that the database does not take.
  case badInput = 65
  case unavailable = 69
  case inputOutput = 74
  /// Somebody else holds the database.
  case locked = 75
  /// Ended in order by a signal: the process returns 128 and the signal's number, as shells report it,
  /// which is this for Ctrl-C and 143 for SIGTERM.
  case interrupted = 130
}
