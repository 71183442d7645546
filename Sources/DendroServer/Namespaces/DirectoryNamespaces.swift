package import Dendro
import DendroPlatform
import DendroProtocol

extension OpeningNamespaces {
  /// A database for each name, in a directory of that name, made when it is first asked for.
  ///
  /// - Parameters:
  ///   - directory: absolute; made if it is missing.
  ///   - name: of the database that requests without a name are for.
  ///   - limit: the most databases that are open at a time.
  ///   - options: of each database.
  package convenience init(
    in directory: String, default name: String, limit: Int = 256, options: DatabaseOptions
  ) {
    let flushes = Histogram()
    var options = options
    options.metrics = { metric in
      if metric.name == "dendro.synchronize.seconds" { flushes.observe(seconds: metric.value) }
    }
    let measured = options
    self.init(default: name, limit: limit, flushes: flushes) {
      Self.names(in: directory)
    } mayHaveLeftovers: { name in
      DisconnectJournal.mayHaveEntries("\(directory)/\(name)")
    } opener: { name in
      try Database.open(at: "\(directory)/\(name)", options: measured)
    }
  }

  /// A database in memory for each name.
  package convenience init(
    inMemory options: DatabaseOptions, default name: String, limit: Int = 256
  ) {
    self.init(default: name, limit: limit) {
      []
    } opener: { _ in
      Database.inMemory(options: options)
    }
  }

  private static func names(in directory: String) -> [String] {
    guard let stream = opendir(directory) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { bytes in
        bytes.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if RESTRequest.isNamespace(name) { names.append(name) }
    }
    return names
  }
}
