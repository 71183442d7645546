import DendroEngine
package import DendroStorage
import DendroTree
public import Foundation

extension Database {
  /// Opens the database in the directory at `path` that keeps in step with a server, and makes one if there is none. The
  /// program has imported `DendroSync` and enabled it.
  ///
  /// The directory keeps what the server has said, and the writes that it has not answered: both are there at the next
  /// opening, also after a crash or without a network, and the writes are sent then in their order, each with the rights
  /// of the user who has made it. Beyond ``persistenceCacheSizeBytes`` the data go that were not listened to for
  /// longest, and never a write. The data are in memory as long as the database is open.
  ///
  /// A directory belongs to one server: opened with another one, or with `open(at:)`, it is refused with
  /// ``DatabaseError/Code/invalidArgument``. `open(readOnly:)` and `open(following:)` show what the server has said.
  ///
  /// - Parameters:
  ///   - path: absolute or relative to the working directory; made with what is missing above it.
  ///   - url: of the server, as for ``database(url:)``: `https://NAME.firebaseio.com`, `http://localhost:9000?ns=NAME`.
  ///   - options: how the database behaves. ``DatabaseOptions/loading`` does not count.
  /// - Throws: ``DatabaseError``: ``DatabaseError/Code/unavailable`` if `DendroSync` is not enabled,
  ///   ``DatabaseError/Code/invalidURL``, ``DatabaseError/Code/locked`` with the holder's process id,
  ///   ``DatabaseError/Code/corrupt`` with file and offset, …
  /// - Complexity: O(what is kept).
  public static func open(
    at path: String, syncingWith url: String, options: DatabaseOptions = DatabaseOptions()
  ) throws -> Database {
    guard let make = Remotes.make else {
      throw DatabaseError(
        .unavailable, "NotEnabled",
        "to keep in step with a server, import DendroSync and call DendroSync.enable() first")
    }
    let named = try DatabaseURL(parsing: url)
    guard let address = RemoteAddress(named), named.path.isEmpty else {
      throw DatabaseURL.invalid(url, "names no server, or a location in its database")
    }
    let database = try open(at: path, syncingWith: address, options: options, make)
    database.settings.setAddress(named.address, named.namespace)
    return database
  }

  /// `open(at:syncingWith:options:)` on a thread of its own.
  public static func open(
    at path: String, syncingWith url: String, options: DatabaseOptions = DatabaseOptions()
  ) async throws -> Database {
    let result = await BackgroundThread.run(.opening) {
      Result { try open(at: path, syncingWith: url, options: options) as Database }
    }
    return try result.get()
  }

  /// `open(at:syncingWith:options:)` with a file URL; any other is refused with
  /// ``DatabaseError/Code/invalidArgument``.
  public static func open(
    at directory: URL, syncingWith url: String, options: DatabaseOptions = DatabaseOptions()
  ) throws -> Database {
    try open(at: path(of: directory), syncingWith: url, options: options)
  }

  /// `open(at:syncingWith:options:)` with a file URL, on a thread of its own.
  public static func open(
    at directory: URL, syncingWith url: String, options: DatabaseOptions = DatabaseOptions()
  ) async throws -> Database {
    try await open(at: path(of: directory), syncingWith: url, options: options)
  }

  /// - Parameter environment: where the files are.
  package static func open(
    at path: String, syncingWith address: RemoteAddress, options: DatabaseOptions,
    environment: DendroStorage.Environment = .system, _ make: @escaping Remotes.Factory
  ) throws(DatabaseError) -> Database {
    let mirror = try options.mirror.map { (text) throws(DatabaseError) in
      do throws(ValidationError) {
        return try Path(location: text)
      } catch {
        throw DatabaseError(error)
      }
    }
    let database = Database(
      engine: nil, openingError: .ownedByServer, hub: EventHub(errorHandler: options.errorHandler),
      orderCache: options.makeOrderCache(), environment: options.applied(to: environment),
      options: options)
    let files = try database.files(
      at: path, for: address, options: options, environment: environment)
    let setup = RemoteSetup(address, files: files, mirror: mirror)
    database.keepInStep(setup, log: options.log, make)
    // It connects now if the directory has writes that the server has not answered, or if something is mirrored; unless a
    // user has signed in here.
    _ = database.remote
    return database
  }

  /// Opens the directory of a server's data.
  func files(
    at path: String, for address: RemoteAddress, options: DatabaseOptions,
    environment: DendroStorage.Environment = .system
  ) throws(DatabaseError) -> Engine {
    var options = options
    options.loading = .whole
    // These bound what a program writes, and not what a server says.
    options.memoryByteLimit = nil
    options.writeByteLimit = DatabaseOptions().writeByteLimit
    let engine = try Self.engine(
      at: path, options: options, environment: options.applied(to: environment),
      mode: options.createsMissing ? .readWrite : .readWriteExisting,
      reportingTo: hub, orderCache)
    do throws(DatabaseError) {
      try SyncedDirectory.claim(engine, for: address)
    } catch {
      try? engine.close()
      throw error
    }
    return engine
  }
}
