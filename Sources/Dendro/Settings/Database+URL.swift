import DendroTree
import Foundation
import Synchronization

extension Database {
  /// The location that `url` names, such as ``DatabaseReference/url`` gives.
  ///
  /// - Parameter url: `scheme://host/path`, percent-encoded; the scheme may be left out. The host must be
  ///   that of this database: otherwise the reference carries ``DatabaseError/Code/invalidURL`` to every
  ///   operation on it, and for a path that cannot be, the error of ``DatabaseReference/child(_:)``.
  public func reference(fromURL url: String) -> DatabaseReference {
    let root = reference()
    do throws(DatabaseError) {
      let named = try DatabaseURL(parsing: url)
      let own = try DatabaseURL(parsing: settings.address)
      guard named.isSameDatabase(as: own) else {
        throw DatabaseURL.invalid(url, "is of another database than \(own.address)")
      }
      if named.path.allSatisfy({ $0 == "/" }) { return root }
      return reference(withPath: named.path)
    } catch {
      return root.failing(error)
    }
  }
}

extension Database {
  private static let instances = Mutex<[String: Database]>([:])

  /// The database with this URL; the same object at each call, except after it was closed or could not
  /// be opened: then the next call tries again; and except after `DendroSync` was enabled.
  ///
  /// - Parameter url: a file URL names the directory. Any other URL is that of a server, such as an app has from
  ///   Firebase. If the program imports `DendroSync` and has enabled it, the database keeps in step with that server.
  ///   Otherwise the URL is only a name: nothing is connected to, and the directory stands beside that of
  ///   ``database()``, named after the executable and the URL's host. References have ``DatabaseReference/url``s
  ///   with that host. The URL must have no path: otherwise, and if the directory cannot be opened,
  ///   every operation on the database gets the error.
  public static func database(url: String) -> Database {
    do {
      if url.hasPrefix("file:") { return try instance(at: directory(ofFileURL: url), nil) }
      let named = try DatabaseURL(parsing: url)
      guard named.path.isEmpty else {
        throw DatabaseURL.invalid(url, "has a path; a database is named without one")
      }
      if let make = Remotes.make, let address = RemoteAddress(named) {
        return instance(address, named, make)
      }
      var name = named.host
      if let port = named.port { name += "_\(port)" }
      if let namespace = named.namespace { name += "_\(namespace)" }
      return try instance(at: defaultDirectory() + "@" + name, named)
    } catch {
      return failed(error)
    }
  }

  private static func instance(
    _ address: RemoteAddress, _ url: DatabaseURL, _ make: @escaping Remotes.Factory
  ) -> Database {
    instances.withLock { instances in
      let name = "\(address)"
      if let database = instances[name], !database.isClosed { return database }
      let database = Database.remote(RemoteSetup(address), options: DatabaseOptions(), make)
      database.settings.setAddress(url.address, url.namespace)
      instances[name] = database
      return database
    }
  }

  private static func instance(at path: String, _ url: DatabaseURL?) throws -> Database {
    try instances.withLock { instances in
      if let database = instances[path], !database.isClosed { return database }
      instances[path] = nil
      let database: Database = try open(at: path)
      if let url { database.settings.setAddress(url.address, url.namespace) }
      instances[path] = database
      return database
    }
  }

  private static func directory(ofFileURL text: String) throws -> String {
    guard let url = URL(string: text), url.isFileURL, !url.path.isEmpty,
      ["", "localhost"].contains(url.host ?? ""), url.path.hasPrefix("/")
    else {
      throw DatabaseURL.invalid(text, "is no file URL of this machine, as file:///var/data is")
    }
    return url.standardizedFileURL.path
  }
}
