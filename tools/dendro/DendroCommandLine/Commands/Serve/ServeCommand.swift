import Dendro
import DendroEngine
import DendroPlatform
import DendroServer
import DendroStorage
import DendroTree

extension Command {
  static let serve = Command(
    name: "serve", summary: "serve databases to clients of the Realtime Database",
    discussion: """
      Answers REST requests and event streams, as an emulator of the Realtime Database does: at the same port
      and paths, but durably. Each namespace (?ns=NAME) is a database in a directory of DIRECTORY, made when
      it is first asked for; if not every client may do everything, by a REST request of an administrator.
      If DIRECTORY is a database itself, every namespace is that one. Databases that are not used are closed,
      and opened again when they are asked for.

      Only this machine reaches the default address, and every client may do everything. At other addresses only
      administrators may, who know the secret (--secret-file), unless --insecure opens it. Signed ID tokens say
      who a user is (--token-secret-file for HS256, --token-keys for RS256: a JSON Web Key Set, PEM texts by
      their names, or one PEM text, in a file or at a URL with https, which is fetched again as its Cache-Control
      says), for the audience of --token-audience; with --users all who have signed in may read and write.

      Security rules decide about everybody but administrators: those of --rules for all databases, which are read
      again when the file changes, or those of each database, which administrators put at /.settings/rules.json.
      'dendro rules' checks and tests them.

      With --tls-certificate and --tls-key the server speaks TLS; both files are read again when they change.

      While every client may do everything, pages of strangers may do nothing. A request needs a host name
      that is an address, has no dot, ends in .localhost, is that of this machine or the one by which
      containers reach it, or stands in --allow-host; and its page, if there is one, has to be the server's
      own, of this machine, or of an origin of --allow-origin. Others get 403.

      With --cluster, several servers share the databases over one PostgreSQL, in which each write is committed before
      it is acknowledged. Of each namespace DIRECTORY has a copy, from which the server answers readings and listens.
      One server leads and makes writes; the others pass on to it what their clients write, so that a client may use
      any server. If the leader is gone for three seconds, or ends, another one leads; of many namespaces each server
      leads some. ADDRESS is as libpq reads it; the environment variable DENDRO_CLUSTER has it where others should not
      see it. 'dendro cluster status' shows all servers.

      /.leader answers 200 on the server that leads in the database of ?ns=NAME, and 503 on others: a load balancer that
      asks it saves writes the way from server to server. That way is a line, TLS with a key that PostgreSQL has, at a
      port of the first --host that the system chooses, or at that of --lines; where there is no line, tables of
      PostgreSQL are the way.

      At the default address / is a page that shows and edits the data; /.metrics has figures for Prometheus, and
      /.status.json says whether the databases can be opened and take writes.

      Of a database that cannot be opened since it is damaged, a REST request reads every location that is whole;
      others name what is lost, and writes get 503, until it is repaired ('dendro repair'). If a part turns out
      to be damaged later, what needs it fails, and the rest goes on.

      Standard error gets a line for each request: time, client, namespace, status, method, target and duration;
      and one for what happens with a database: what its opening has replayed and cut, a full disk, a lost lock.
      With --json they are objects.

      With --import, the database of requests without ?ns= begins with what FILE has, in one write. If
      there is data, FILE is passed over with a line that says so, and the server starts: the same
      command line serves for the first start and for each later one. With --replace FILE takes the
      place of the data, at every start. If FILE is a directory, each database NAME begins with what NAME.json
      there has; it may be one that Firebase's emulators have exported.

      Ends with Ctrl-C or SIGTERM: requests that have come whole are answered first. --export-on-exit
      writes then: the database of requests without ?ns= to FILE, or if FILE is a directory or ends in /,
      each database NAME to NAME.json there. That this can be written is checked at the start.
      """,
    parameters: [
      Parameter(
        name: "DIRECTORY", summary: "where the databases are; left out with --memory",
        isOptional: true)
    ],
    options: [
      Option(
        name: "port", short: "p", value: "N", summary: "9000 if left out; 0: any that is free"),
      Option(
        name: "host", value: "ADDRESS",
        summary: "127.0.0.1 if left out; may be repeated; localhost is 127.0.0.1 and ::1"),
      Option(
        name: "namespace", value: "NAME", summary: "that of requests without ?ns= (default)"),
      Option(
        name: "namespaces", value: "N",
        summary: "the most that requests make in DIRECTORY; 10000 if left out"),
      Option(
        name: "cluster", value: "ADDRESS",
        summary: "share the databases with other servers over this PostgreSQL"),
      Option(
        name: "advertise", value: "ADDRESS",
        summary:
          "where clients reach this server: HOST, HOST:PORT or a URL; the first --host if left out"),
      Option(
        name: "lines", value: "PORT",
        summary:
          "where other servers reach this one: PORT or HOST:PORT; off: by PostgreSQL alone"),
      Option(name: "memory", summary: "keep nothing on the disk"),
      Option(
        name: "import", value: "FILE",
        summary: "JSON to begin with, if the database is empty; or a directory"),
      Option(name: "replace", short: "r", summary: "import in place of the data that is there"),
      Option(name: "export-on-exit", value: "FILE", summary: "write the root as JSON at the end"),
      Option(
        name: "secret-file", value: "FILE",
        summary: "its first line, of 8 bytes or more, is the administrators'"),
      Option(
        name: "tls-certificate", value: "FILE", summary: "speak TLS with this certificate, in PEM"),
      Option(name: "tls-key", value: "FILE", summary: "its private key, in PEM"),
      Option(
        name: "allow-host", value: "NAMES",
        summary: "host names of the server, with commas between them"),
      Option(
        name: "allow-origin", value: "ORIGINS",
        summary: "of pages that may ask, as https://app.example.com; * for all"),
      Option(name: "insecure", summary: "open to every client that reaches the address"),
      Option(
        name: "token-secret-file", value: "FILE", summary: "its first line signs tokens with HS256"),
      Option(
        name: "token-keys", value: "FILE|URL",
        summary: "public keys of RS256; read again when they change"),
      Option(name: "token-issuer", value: "ISS", summary: "what the claim iss has to be"),
      Option(name: "token-audience", value: "AUD", summary: "what the claim aud has to be"),
      Option(
        name: "rules", value: "FILE",
        summary: "security rules for all databases; read again when changed"),
      Option(name: "users", summary: "signed-in users may read and write everything"),
      Option(
        name: "sessions", value: "N", summary: "the most clients with a session; 10000 if left out"),
      Option(
        name: "address-sessions", value: "N",
        summary: "the most of them at one address; a quarter if left out"),
      Option(
        name: "session-memory", value: "MIB",
        summary: "what all of them may have in memory; 1024 if left out"),
      Option(
        name: "read-limit", value: "MIB",
        summary: "the most that one reading may show; 256 if left out"),
      Option(
        name: "rate", value: "N",
        summary: "about the most messages of one session in a second"),
      Option(
        name: "per-address", value: "N",
        summary: "the most connections of one address; a quarter of all if left out"),
      Option(
        name: "trust-proxy", value: "HEADER",
        summary: "the field by which the proxy says where a client is"),
      Option(name: "viewer", summary: "the data viewer at / also if others reach the address"),
      Option(name: "no-viewer", summary: "without the data viewer"),
      Option(name: "quiet", short: "q", summary: "without a line for each request"),
      .durability, .json,
    ],
    examples: [
      Example(line: "dendro serve data", summary: "for apps and tests on this machine"),
      Example(
        line: "dendro serve --memory --import seed.json --port 0", summary: "for one test run"),
      Example(
        line: "dendro serve data --cluster postgresql://dendro@db/dendro",
        summary: "one of several servers"),
    ],
    run: { try Server($0).run() })
}

/// One run of `serve`.
private struct Server {
  private let arguments: Arguments
  private let name: String
  private let hosts: [String]
  private let log: ServeLog
  /// Nil if the server serves alone.
  private let cluster: ServedCluster?

  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    name = arguments.value("namespace") ?? "default"
    let hosts = arguments.values("host")
    self.hosts = hosts.isEmpty ? ["127.0.0.1"] : hosts
    log = ServeLog(isJSON: arguments.wantsJSON)
    guard DatabaseServer.isNamespace(name) else {
      throw Failure.usage(
        "--namespace takes letters, digits, - and _, not \(Failure.quoted(name))")
    }
    cluster = try ServedCluster(arguments, hosts: self.hosts)
  }

  func run() throws -> ExitCode {
    // Who reads the log may end before the server.
    signal(SIGPIPE, SIG_IGN)
    // Each connection needs a descriptor.
    DatabaseServer.raiseDescriptorLimit()
    let options = try ServeOptions(arguments, hosts: hosts).forServer(log)
    try ServedData.check(arguments)
    let (namespaces, place) = try namespaces()
    Interruption.listen()
    defer { log.finish() }
    let data: ServedData
    let server: DatabaseServer
    do {
      // Databases that wait for the port go on in any case.
      defer { cluster?.listens(at: 0) }
      data = try ServedData(arguments, namespaces, at: place)
      try data.load()
      server = try DatabaseServer.start(namespaces, options)
      cluster?.listens(at: server.port)
    } catch let error as DatabaseServerError {
      throw Failure(.unavailable, error.message)
    } catch {
      try? namespaces.end()
      throw error
    }
    // Who was to read it may have left: the server is there all the same.
    try? announce(server)
    while !Interruption.isRequested { Interruption.sleep(milliseconds: 100) }
    let end = try data.end()
    try Blocking.run { await server.stop() }
    if let end { try data.write(end) }
    return .success
  }

  /// - Returns: the databases, and where the one with a name is; nil if there is only one, or if they are in memory.
  private func namespaces() throws -> (any Namespaces, place: ((_ name: String) -> String)?) {
    var limits = OpeningNamespaces.Limits()
    if let count = try arguments.integer("namespaces", in: 1...10_000_000) { limits.count = count }
    var options = DatabaseOptions()
    options.durability = try Session.durability(arguments.value("durability")).forDatabases
    if let cluster {
      let all = cluster.namespaces(default: name, limits: limits, options: options, log: log)
      return (all, cluster.databasePath)
    }
    if arguments.has("memory") {
      guard arguments.positional.isEmpty else {
        throw Failure.usage("--memory takes no DIRECTORY")
      }
      return (OpeningNamespaces(inMemory: options, default: name, limits: limits), nil)
    }
    guard !arguments.positional.isEmpty else { throw Failure.usage("DIRECTORY is missing") }
    let directory = try arguments.directoryPath()
    try ServedCluster.refuseCopies(in: directory, named: arguments.directory)
    if try ServedData.isDatabase(directory) {
      // The history that its own program keeps is not the server's to remove.
      options.history = .all
      options.logging = { [log, name] in log.note(NamespaceEvent(name, $0)) }
      let errors = UnawaitedErrors(of: name) { [log] in log.note($0) }
      options.errorHandler = { errors.add($0) }
      do {
        let only = try SingleNamespace(
          try Database.open(at: directory, options: options),
          named: arguments.value("namespace"), closes: true)
        return (only, nil)
      } catch let error as DatabaseError where error.name == "SyncedDirectory" {
        throw Failure(
          .badInput,
          "the database at \(arguments.directory) has the data of another server, which only that one changes",
          hint: "'dendro info \(arguments.directory) --full' says of which")
      } catch let error as DatabaseError where error.code == .corrupt {
        log.note(
          NamespaceEvent(
            name, .error, "the database is damaged: what is whole can be read",
            ["error": error.message]))
        let rest = DamagedNamespace(
          at: directory, named: arguments.value("namespace"), because: error)
        return (rest, nil)
      }
    }
    let all = OpeningNamespaces(in: directory, default: name, limits: limits, options: options) {
      [log] event in
      log.note(event)
    }
    return (all, { "\(directory)/\($0)" })
  }

  // MARK: Beginning and end

  private func announce(_ server: DatabaseServer) throws {
    let terminal = try Terminal(color: arguments.value("color"))
    let places = hosts.map { host in
      host.contains(":") ? "[\(host)]:\(server.port)" : "\(host):\(server.port)"
    }
    if arguments.wantsJSON {
      let advertised =
        cluster.map { [("advertised", JSONValue.string($0.listens(at: server.port)))] } ?? []
      try terminal.print(
        JSONValue.object(
          [
            ("host", .string(hosts[0])), ("hosts", .array(hosts.map { .string($0) })),
            ("port", .unsigned(UInt64(server.port))),
            ("namespace", .string(name)),
          ] + advertised
        ).text)
    } else {
      let scheme = arguments.value("tls-certificate") == nil ? "http" : "https"
      let addresses = places.map { "\(scheme)://\($0)" }.joined(separator: " and ")
      try terminal.print("serving at \(addresses) (Ctrl-C ends)")
    }
    try terminal.flush()
    if !ServeOptions.isRestricted(arguments), arguments.value("rules") == nil {
      log.note(
        .warning,
        "every client that reaches \(places.joined(separator: " or ")) may read and write everything"
      )
    }
  }
}

extension DendroEngine.Durability {
  fileprivate var forDatabases: Database.Durability {
    switch self {
    case .everyCommit: .everyCommit
    case .interval(let interval): .interval(interval)
    case .none: .onRequest
    }
  }
}
