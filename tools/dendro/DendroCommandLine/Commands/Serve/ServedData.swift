import Dendro
import DendroEngine
import DendroServer
import DendroStorage
import DendroTree

/// The data that a server begins with, and what it writes when it ends: of the database of requests without a name in a
/// file, or of every database in a directory of files.
struct ServedData {
  private let arguments: Arguments
  private let namespaces: any Namespaces
  /// Where the database with a name is; nil if there is only one, or if they are in memory.
  private let place: ((_ name: String) -> String)?

  /// - Throws: if what the arguments name cannot be.
  init(
    _ arguments: Arguments, _ namespaces: any Namespaces, at place: ((_ name: String) -> String)?
  ) throws {
    self.arguments = arguments
    self.namespaces = namespaces
    self.place = place
    if let path = arguments.value("import"), NamespaceFiles.isMeant(by: path),
      !namespaces.makesNamespaces
    {
      throw Failure.usage("--import takes a file here: DIRECTORY is one database")
    }
  }

  /// Checks the arguments that need no database.
  static func check(_ arguments: Arguments) throws {
    if arguments.has("replace"), arguments.value("import") == nil {
      throw Failure.usage("--replace needs --import")
    }
    if let path = arguments.value("import") {
      guard !path.isEmpty else { throw Failure.usage("--import is empty") }
      // Before a directory is made for it. If there is data, the file may be gone.
      let isFirst = try arguments.positional.isEmpty || !Platform.exists(arguments.directoryPath())
      guard !isFirst || path == "-" || Platform.exists(path) else {
        throw Failure(.inputOutput, "cannot read \(path): \(Platform.lastError)")
      }
    }
    guard let path = arguments.value("export-on-exit") else { return }
    guard !path.isEmpty else { throw Failure.usage("--export-on-exit is empty") }
    if NamespaceFiles.isMeant(by: path) {
      if !arguments.positional.isEmpty {
        let target = try Arguments.absolutePath(path, "--export-on-exit")
        guard !(target + "/").hasPrefix(try arguments.directoryPath() + "/") else {
          throw Failure.usage(
            "--export-on-exit: a directory in DIRECTORY would be taken for a database")
        }
      }
      try NamespaceFiles(directory: path).prepare()
    } else {
      try OutputFile.check(path)
    }
  }

  // MARK: The beginning

  /// Puts what the files have into the databases.
  func load() throws {
    guard let path = arguments.value("import") else { return }
    guard NamespaceFiles.isMeant(by: path) else { return try load(path, into: nil) }
    for (name, file) in try NamespaceFiles(directory: path).files() { try load(file, into: name) }
  }

  private func load(_ file: String, into name: String?) throws {
    let lease = try namespaces.namespace(name, makesNew: true)
    let engine = try lease.namespace.database.servedEngine()
    let seed = Seed(file: file)
    if arguments.has("memory") { return try seed.load(intoMemory: engine) }
    let outcome = try seed.load(into: engine, replaces: arguments.has("replace"))
    seed.note(outcome, asJSON: arguments.wantsJSON)
  }

  // MARK: The end

  /// What is written once the server has stopped.
  struct End {
    fileprivate let path: String
    /// The database of requests without a name, if only that is written: what is closed still has its last state.
    fileprivate let only: NamespaceLease?
  }

  /// To be called before the server stops.
  ///
  /// - Returns: nil if nothing is to be written.
  func end() throws -> End? {
    guard let path = arguments.value("export-on-exit") else { return nil }
    guard NamespaceFiles.isMeant(by: path) else {
      return End(path: path, only: try namespaces.namespace(nil, makesNew: true))
    }
    return End(path: path, only: nil)
  }

  /// Writes the data, after the server has stopped.
  func write(_ end: End) throws {
    do {
      if let only = end.only {
        try Self.write(try only.namespace.root(), to: end.path)
      } else {
        try writeAll(end)
      }
    } catch {
      var failure = Failure(describing: error)
      if arguments.has("memory") {
        failure.message += "\n  the data was in memory only, and is lost"
      }
      throw failure
    }
  }

  /// Writes a file for each database, also behind one that cannot be read.
  private func writeAll(_ end: End) throws {
    let files = NamespaceFiles(directory: end.path)
    var failure: (any Error)?
    func write(_ name: String, _ root: () throws -> Node?) {
      do {
        if let root = try root() { try Self.write(root, to: files.path(of: name)) }
      } catch {
        failure = failure ?? error
      }
    }
    let open = namespaces.atEnd
    for namespace in open { write(namespace.name) { try namespace.root() } }
    for name in Set(namespaces.names).subtracting(open.map(\.name)).sorted() {
      if let place {
        write(name) {
          // A directory without a database stands there for another reason.
          guard try Self.isDatabase(place(name)) else { return nil }
          let engine = try Engine.open(at: place(name), mode: .readOnly)
          defer { try? engine.close() }
          return try engine.wholeHead().root
        }
      } else {
        failure = failure ?? namespaces.failures[name] ?? NamespaceError.unknown(name)
      }
    }
    if let failure { throw failure }
  }

  /// Whether a directory is a database.
  static func isDatabase(_ directory: String) throws -> Bool {
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(directory, environment: .system, mode: .readOnly)
      defer { directory.close() }
      return try !directory.contents().isEmpty
    } catch {
      if case .notFound = error { return false }
      throw error
    }
  }

  private static func write(_ root: Node, to file: String) throws {
    let output = try OutputFile(file)
    try JSONWriter.write(root, style: JSONStyle(.export)) { try output.write($0) }
    try [UInt8(ascii: "\n")].withUnsafeBytes(output.write)
    try output.finish()
  }
}
