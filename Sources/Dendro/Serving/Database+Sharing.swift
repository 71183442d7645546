package import DendroEngine
package import DendroStorage

extension Database {
  /// Makes a database of an engine that shares its log.
  ///
  /// - Parameter open: opens the engine, with options and environment as given.
  package static func sharing(
    options: DatabaseOptions,
    _ open: (EngineOptions, DendroStorage.Environment) throws(DatabaseError) -> Engine
  ) throws(DatabaseError) -> Database {
    try options.checkHistory()
    let hub = EventHub(errorHandler: options.errorHandler)
    let orderCache = options.makeOrderCache()
    let environment = options.applied(to: .system)
    let engine = try open(options.engineOptions(reportingTo: hub, orderCache), environment)
    return Database(
      engine: engine, at: engine.path, hub: hub, orderCache: orderCache, environment: environment,
      options: options)
  }

  /// The log that the database shares with others; nil if it decides alone.
  package var sharedLog: (any SharedLog)? { (try? usable())?.sharedLog }
}
