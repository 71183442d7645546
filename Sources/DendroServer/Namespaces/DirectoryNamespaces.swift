package import Dendro
import DendroPlatform
import DendroProtocol

extension OpeningNamespaces {
  /// A database for each name, in a directory of that name, made when it is first asked for.
  ///
  /// - Parameters:
  ///   - directory: absolute; made if it is missing.
  ///   - name: of the database that requests without a name are for.
  ///   - limits: how many databases there may be.
  ///   - options: of each database.
  ///   - report: gets what happens with a database.
  package convenience init(
    in directory: String, default name: String, limits: Limits = Limits(),
    options: DatabaseOptions,
    report: @escaping @Sendable (NamespaceEvent) -> Void = { _ in }
  ) {
    let flushes = Histogram()
    var options = options
    options.metrics = { metric in
      if metric.name == "dendro.synchronize.seconds" { flushes.observe(seconds: metric.value) }
    }
    let measured = options
    self.init(default: name, limits: limits, flushes: flushes) {
      Self.names(in: directory)
    } mayHaveLeftovers: { name in
      DisconnectJournal.mayHaveEntries("\(directory)/\(name)")
    } directory: { name in
      "\(directory)/\(name)"
    } report: {
      report($0)
    } opener: { name in
      let path = "\(directory)/\(name)"
      guard Self.isDirectory(path) ?? true else { throw NamespaceError.noDirectory(name) }
      var options = measured
      options.logging = { report(NamespaceEvent(name, $0)) }
      let errors = UnawaitedErrors(of: name, report: report)
      options.errorHandler = { errors.add($0) }
      return try Database.open(at: path, options: options)
    }
  }

  /// A database in memory for each name. One that has data is never closed.
  package convenience init(
    inMemory options: DatabaseOptions, default name: String, limits: Limits = Limits()
  ) {
    self.init(default: name, limits: limits) {
      []
    } opener: { _ in
      Database.inMemory(options: options)
    }
  }

  /// Nil if there is nothing with this path.
  package static func isDirectory(_ path: String) -> Bool? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return status.st_mode & S_IFMT == S_IFDIR
  }

  /// The directories: a file that stands among them is no database.
  package static func names(in directory: String) -> [String] {
    guard let stream = opendir(directory) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { bytes in
        bytes.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard RESTRequest.isNamespace(name) else { continue }
      let kind = Int(entry.pointee.d_type)
      // Some file systems do not say the kind, and a link may lead to a directory.
      let mayBe = kind == Int(DT_DIR) || kind == Int(DT_UNKNOWN) || kind == Int(DT_LNK)
      if mayBe, kind == Int(DT_DIR) || Self.isDirectory("\(directory)/\(name)") == true {
        names.append(name)
      }
    }
    return names
  }
}
