/// What the exit codes mean, of all verbs and of each.
enum ExitCodes {
  typealias Row = (code: Int, meaning: String)

  static let all: [Row] = [
    (0, "good"), (1, "nothing found, a difference, or a problem"), (2, "damaged database"),
    (64, "usage"), (65, "bad data"), (69, "unavailable"), (74, "input or output failed"),
    (75, "locked by another process"), (130, "interrupted"),
  ]

  /// Those with which a verb ends, in its own words as far as it has some.
  static func rows(of command: Command) -> [Row] {
    all.compactMap { code, meaning in
      switch code {
      case 1: own[command.name].map { (1, $0) }
      case 2 where withoutDatabase.contains(command.name): nil
      case 69 where command.name == "rules": (69, "unavailable: there is no database")
      case 69 where comparing.contains(command.name):
        (69, "unavailable: there is no database, or the state is not kept")
      case 75 where !locking(command): nil
      default: (code, meaning)
      }
    }
  }

  /// The verbs of which 1 says that two things differ, and nothing else.
  static let comparing: Set = ["compare", "diff"]
  private static let withoutDatabase: Set = ["completion", "manual"]

  private static func locking(_ command: Command) -> Bool {
    command.writes
      || ["archive", "backup", "checkpoint", "cluster", "purge", "serve", "shell"].contains(
        command.name)
  }

  /// What 1 means; none for a verb that does not end with it.
  private static let own: [String: String] = [
    "import": "data is at PATH already, or with --continue other data than the file's",
    "export": "nothing is at PATH, the state of --at is not kept, or there is no database",
    "get": "nothing is at PATH, the state of --at is not kept, or there is no database",
    "set": "nothing is at PATH that could have the priority, or --no-create and no database",
    "update": "--no-create and no database", "push": "--no-create and no database",
    "remove": "nothing was at PATH, nothing was done, or there is no database",
    "increment": "something other than a number is at PATH, or --no-create and no database",
    "apply": "a line's \"was\" is not what is there, or --no-create and no database",
    "watch": "there is no database", "log": "no write was found, or there is no database",
    "history": "nothing has happened at PATH, or there is no database",
    "blame": "nothing is at PATH, the state of --at is not kept, or there is no database",
    "diff": "the states differ", "compare": "the trees differ",
    "hash": "the state of --at is not kept, or there is no database",
    "dump": "there is no such record, checkpoint or chunk, or no database",
    "pending": "the database keeps in step with no server, or there is none",
    "info": "there is no database", "verify": "there is no database",
    "repair": "something is lost, TARGET exists already, or there is no database",
    "checkpoint": "there is no database", "purge": "nothing was done, or there is no database",
    "backup": "TARGET exists already, or there is no database",
    "archive": "the archive is of another log, or there is no database",
    "restore":
      "TARGET exists already, the state of --at is not kept, or there is no such archive",
    "rules": "a case of the tests failed, or the request that is explained is denied",
    "serve": "another problem",
    "cluster":
      "no servers share databases over this PostgreSQL, it is not done, or the servers of 'verify' differ",
    "shell": "the last line of a script found nothing, or a problem",
    "demo": "a promise did not hold, or DIRECTORY exists already",
  ]
}
