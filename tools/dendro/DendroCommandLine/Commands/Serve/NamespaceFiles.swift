import DendroPlatform
import DendroServer
import DendroStorage
import DendroTree

/// A directory with the data of several databases: a file NAME.json for each.
struct NamespaceFiles {
  let directory: String

  /// Whether a path stands for such a directory: there is one, or the path ends in a slash.
  static func isMeant(by path: String) -> Bool { path.hasSuffix("/") || isDirectory(path) }

  private static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  // MARK: Reading

  /// What Firebase's emulators write beside their exports.
  private static let exportName = "firebase-export-metadata.json"

  /// The databases and their files, in the order of their names. In a directory that Firebase's emulators have exported
  /// these are the files of the Realtime Database.
  ///
  /// - Throws: `Failure` if the directory cannot be read, or a file has a name that no database may have.
  func files() throws -> [(name: String, file: String)] {
    let names = try Self.names(in: directory)
    if names.contains(Self.exportName) {
      return try NamespaceFiles(directory: exportedDirectory()).files()
    }
    return try names.filter { $0.hasSuffix(".json") }.sorted().map { file in
      let name = String(file.dropLast(".json".count))
      guard DatabaseServer.isNamespace(name) else {
        throw Failure(
          .badInput, "\(directory)/\(file): no database can have the name \(Failure.quoted(name))",
          hint: "a name has letters, digits, - and _")
      }
      return (name, path(of: name))
    }
  }

  private static func names(in directory: String) throws -> [String] {
    do throws(SystemError) {
      return try Environment.system.fileSystem.list(directory)
    } catch {
      throw Failure(.inputOutput, "cannot list \(directory): \(error)")
    }
  }

  /// The directory with the files of the Realtime Database, as an export of the emulators names it.
  private func exportedDirectory() throws -> String {
    let file = "\(directory)/\(Self.exportName)"
    let bytes = try InputFile(file).readAll(limit: 1 << 20)
    let metadata: Node
    do {
      metadata = try bytes.withUnsafeBytes { try JSONParser.parse($0) }
    } catch {
      throw Failure(.badInput, "\(file): \(error)")
    }
    guard let place = try? Path(parsing: "database/path"),
      case .string(let name)? = metadata.node(at: place).scalar, !name.isEmpty
    else {
      throw Failure(.badInput, "\(file) names no files of the Realtime Database")
    }
    return "\(directory)/\(name)"
  }

  func path(of name: String) -> String {
    (directory.hasSuffix("/") ? directory : directory + "/") + name + ".json"
  }

  // MARK: Writing

  /// Makes the directory if it is missing, and checks that files can be written there.
  func prepare() throws {
    if mkdir(directory, 0o755) != 0, errno != EEXIST {
      throw Failure(.inputOutput, "cannot make \(directory): \(Platform.lastError)")
    }
    if try Self.names(in: directory).contains(Self.exportName) {
      // The next start would read those in place of what is written now.
      throw Failure.usage(
        "--export-on-exit: \(directory) has files of Firebase's emulators; give another directory")
    }
    try OutputFile.check(path(of: ".dendro"))
  }
}
