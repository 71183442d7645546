/// The options of the command line.
struct BenchOptions {
  enum Action { case run, list, help }
  enum Output { case text, json, markdown }

  var action = Action.run
  var workloads = Workload.all
  var isQuick = false
  var output = Output.text
  var rounds = 3
  /// The file for the picture of the ratios; nil for none.
  var picture: String?
  /// The folder for the databases; nil for the system's temporary folder.
  var directory: String?

  init(_ arguments: some Sequence<String>) throws {
    var named: [Workload] = []
    var rounds: Int?
    var rest = arguments.makeIterator()
    while let argument = rest.next() {
      switch argument {
      case "--help", "-h": action = .help
      case "--list": action = .list
      case "--quick": isQuick = true
      case "--json": output = .json
      case "--markdown": output = .markdown
      case "--rounds":
        guard let count = rest.next().flatMap({ Int($0) }), (1...1000).contains(count) else {
          throw UsageError(message: "--rounds takes a number from 1 to 1000")
        }
        rounds = count
      case "--picture":
        guard let path = rest.next() else { throw UsageError(message: "--picture takes a path") }
        picture = path
      case "--directory":
        guard let path = rest.next() else { throw UsageError(message: "--directory takes a path") }
        directory = path
      default:
        // A row of the table may be several workloads.
        let meant = Workload.all.filter { $0.name == argument || $0.row == argument.uppercased() }
        guard !meant.isEmpty else {
          throw UsageError(
            message: "dendro-bench: no workload or option '\(argument)'; --list names them")
        }
        named += meant
      }
    }
    if !named.isEmpty { workloads = named }
    self.rounds = rounds ?? (isQuick ? 1 : 3)
  }
}

struct UsageError: Error {
  let message: String
}
