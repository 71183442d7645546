/// The options of the command line.
struct BenchOptions {
  enum Action { case run, list, help }

  var action = Action.run
  var workloads = Workload.all
  var isQuick = false
  var printsJSON = false
  var rounds = 5
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
      case "--json": printsJSON = true
      case "--rounds":
        guard let count = rest.next().flatMap({ Int($0) }), (1...1000).contains(count) else {
          throw UsageError(message: "--rounds takes a number from 1 to 1000")
        }
        rounds = count
      case "--directory":
        guard let path = rest.next() else { throw UsageError(message: "--directory takes a path") }
        directory = path
      default:
        guard let workload = Workload.all.first(where: { $0.name == argument }) else {
          throw UsageError(
            message: "dendro-bench: no workload or option '\(argument)'; --list names them")
        }
        named.append(workload)
      }
    }
    if !named.isEmpty { workloads = named }
    self.rounds = rounds ?? (isQuick ? 1 : 5)
  }
}

struct UsageError: Error {
  let message: String
}
