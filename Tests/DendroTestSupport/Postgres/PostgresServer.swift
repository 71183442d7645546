import DendroPlatform
import Foundation

/// A PostgreSQL of the test's own, from the system's packages, on this machine.
package final class PostgresServer {
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// Where the newest installed PostgreSQL has its programs; nil if none is installed.
  package static let programs: String? = {
    let root = "/usr/lib/postgresql"
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
    return versions.compactMap(Int.init).max().map { "\(root)/\($0)/bin" }
  }()

  package static var isInstalled: Bool { programs != nil }

  package let port: Int
  /// The disk that it has for itself.
  package private(set) var disk: SmallDisk?
  private let folder: TemporaryFolder
  private var process: Process?
  private var data: String { folder.path + "/data" }

  package var address: String { "postgresql://postgres@127.0.0.1:\(port)/postgres" }

  /// Makes a server, and starts it.
  ///
  /// - Parameter settings: lines of its configuration.
  package convenience init(_ settings: String...) throws { try self.init(settings) }

  /// - Parameter diskSize: of a disk of its own, in bytes; nil: it is in the folder of all temporary files.
  package init(_ settings: [String], diskSize: Int? = nil) throws {
    folder = try Self.folder()
    port = try ReservedPort.take()
    disk = try diskSize.map { try SmallDisk(at: folder.path + "/data", size: $0, owner: Self.user) }
    let empty = try Self.empty.get().path
    try Self.execute(["/bin/cp", "-a", empty + "/data/.", folder.path + "/data"])
    try configure(settings)
    try start()
  }

  /// What `initdb` makes, once for all servers: a copy takes a tenth of its time.
  private static let empty: Result<TemporaryFolder, any Error> = Result {
    let made = try folder()
    try run(
      "initdb", "--no-sync", "-A", "trust", "-U", "postgres", "--locale=C.UTF-8", "-E", "UTF8",
      "-D", made.path + "/data")
    // It is not removed with a value, as other folders are.
    atexit {
      guard case .success(let folder) = PostgresServer.empty else { return }
      try? FileManager.default.removeItem(atPath: folder.path)
    }
    return made
  }

  /// Makes a standby of another server, and starts it.
  ///
  /// - Parameters:
  ///   - address: where it finds that server; nil: where it is.
  ///   - diskSize: see above.
  package init(
    standbyOf primary: PostgresServer, at address: String? = nil, name: String,
    _ settings: [String] = [], diskSize: Int? = nil
  ) throws {
    folder = try Self.folder()
    port = try ReservedPort.take()
    disk = try diskSize.map { try SmallDisk(at: folder.path + "/data", size: $0, owner: Self.user) }
    try Self.run(
      "pg_basebackup", "--no-sync", "-R", "-c", "fast", "-D", folder.path + "/data", "-d",
      (address ?? primary.address) + "?application_name=\(name)")
    try configure(settings)
    try start()
  }

  deinit {
    kill()
    // Before the folder that it is in.
    disk = nil
  }

  private static func folder() throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    if let user {
      guard chown(folder.path, user.id, user.group) == 0 else {
        throw Failure(description: "chown \(folder.path)")
      }
    }
    return folder
  }

  /// Who runs it, if these tests are run by root; nil: whoever runs them.
  private static let user: (id: uid_t, group: gid_t)? = {
    guard getuid() == 0, let user = getpwnam("postgres") else { return nil }
    return (user.pointee.pw_uid, user.pointee.pw_gid)
  }()

  private func configure(_ settings: [String]) throws {
    let file = data + "/postgresql.auto.conf"
    let old = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
    let lines =
      [
        old, "port = \(port)", "listen_addresses = '127.0.0.1'",
        "unix_socket_directories = '\(folder.path)'", "fsync = off", "max_connections = 60",
        "shared_buffers = 16MB", "wal_level = replica", "autovacuum = off",
        "logging_collector = off",
        // In the folder, and so removed with it however the server ends.
        "dynamic_shared_memory_type = mmap",
      ] + settings
    try lines.joined(separator: "\n").appending("\n")
      .write(toFile: file, atomically: false, encoding: .utf8)
  }

  // MARK: Running

  package func start() throws {
    guard let programs = Self.programs else { throw Failure(description: "no PostgreSQL") }
    let process = Process()
    // It ends with the test, however that ends.
    Self.prepare(process, [programs + "/postgres", "-D", data])
    process.standardOutput = FileHandle.nullDevice
    let log = folder.path + "/log"
    if !FileManager.default.fileExists(atPath: log) {
      _ = FileManager.default.createFile(atPath: log, contents: nil)
    }
    let handle = FileHandle(forWritingAtPath: log)
    _ = try handle?.seekToEnd()
    process.standardError = handle ?? FileHandle.nullDevice
    try Self.runOnOwnThread(process)
    self.process = process
    let deadline = ContinuousClock.now + .seconds(60)
    while !isReady(process) {
      guard process.isRunning, .now < deadline else {
        let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        throw Failure(description: "PostgreSQL does not start: \(text.suffix(1000))")
      }
      usleep(10_000)
    }
  }

  /// Whether it takes connections, as it says in its file. That of an earlier run names another process.
  private func isReady(_ process: Process) -> Bool {
    let text = (try? String(contentsOfFile: data + "/postmaster.pid", encoding: .utf8)) ?? ""
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    return lines.count >= 8 && Int32(lines[0]) == process.processIdentifier
      && lines[7].trimmingCharacters(in: .whitespaces) == "ready"
  }

  /// Linux ends the process with the thread that has started it, and those of the tests end when they are idle.
  private static func runOnOwnThread(_ process: Process) throws {
    nonisolated(unsafe) var failure: (any Error)?
    let isStarted = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      do {
        try process.run()
        isStarted.signal()
        process.waitUntilExit()
      } catch {
        failure = error
        isStarted.signal()
      }
    }
    isStarted.wait()
    if let failure { throw failure }
  }

  /// False once it has ended, also by itself.
  package var isRunning: Bool { process?.isRunning ?? false }

  /// Ends it at once, as a power cut would, but for what the system has written by then.
  package func kill() {
    guard let process, process.isRunning else { return }
    // Stopped, it starts no more children. Those that are frozen would not end with it, and Foundation waits for all.
    let postmaster = process.processIdentifier
    DendroPlatform.kill(postmaster, SIGSTOP)
    for child in children(of: postmaster) { DendroPlatform.kill(child, SIGKILL) }
    DendroPlatform.kill(postmaster, SIGKILL)
    process.waitUntilExit()
    self.process = nil
    waitForChildren()
    removeSharedMemory()
  }

  /// Removes what a killed server leaves in the system: its file has the number of it in the seventh line.
  private func removeSharedMemory() {
    let file = data + "/postmaster.pid"
    let lines = ((try? String(contentsOfFile: file, encoding: .utf8)) ?? "")
      .split(separator: "\n", omittingEmptySubsequences: false)
    if lines.count > 6, let number = lines[6].split(separator: " ").last.flatMap({ Int32($0) }) {
      shmctl(number, IPC_RMID, nil)
    }
    try? FileManager.default.removeItem(atPath: file)
  }

  /// Has it end in order: sessions are ended, what is written is kept.
  package func stop() {
    guard let process, process.isRunning else { return }
    DendroPlatform.kill(process.processIdentifier, SIGINT)
    process.waitUntilExit()
    self.process = nil
  }

  /// Has it stand still, with its children, or go on.
  package func freeze(_ isFrozen: Bool) {
    guard let process else { return }
    for child in [process.processIdentifier] + children(of: process.processIdentifier) {
      DendroPlatform.kill(child, isFrozen ? SIGSTOP : SIGCONT)
    }
  }

  private func children(of parent: pid_t) -> [pid_t] {
    let path = "/proc/\(parent)/task/\(parent)/children"
    return ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: " ")
      .compactMap { pid_t($0) }
  }

  /// Waits until no process uses the directory any more: the next start would refuse it.
  private func waitForChildren() {
    let deadline = ContinuousClock.now + .seconds(10)
    while .now < deadline {
      let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
      let isUsed = names.contains { name in
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(name)/cwd")) == data
      }
      if !isUsed { return }
      usleep(10_000)
    }
  }

  /// Has a standby become a primary.
  package func promote() throws {
    _ = try query("SELECT pg_promote(true, 30)")
  }

  /// Names the standbys that have to confirm each commit, and waits until they are there.
  package func setSynchronousStandbys(_ names: String, waits: Bool = true) throws {
    _ = try query("ALTER SYSTEM SET synchronous_standby_names = '\(names)'")
    _ = try query("SELECT pg_reload_conf()")
    let deadline = ContinuousClock.now + .seconds(30)
    while try query("SHOW synchronous_standby_names") != names {
      guard .now < deadline else { throw Failure(description: "the names are not taken over") }
      usleep(20_000)
    }
    // Commits wait once the checkpointer has read the names, which it does before a checkpoint.
    _ = try query("CHECKPOINT")
    while waits,
      try query("SELECT count(*) FROM pg_stat_replication WHERE sync_state <> 'async'") == "0"
    {
      guard .now < deadline else { throw Failure(description: "the standby does not come") }
      usleep(20_000)
    }
  }

  /// The answer of a statement, as `psql` prints it.
  @discardableResult
  package func query(_ sql: String) throws -> String {
    try Self.run("psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", address, "-c", sql)
  }

  // MARK: Programs

  /// Runs one of PostgreSQL's programs.
  ///
  /// - Returns: what it prints.
  @discardableResult
  package func run(_ program: String, _ arguments: String...) throws -> String {
    try Self.run(program, arguments)
  }

  @discardableResult
  private static func run(_ program: String, _ arguments: String...) throws -> String {
    try run(program, arguments)
  }

  private static func run(_ program: String, _ arguments: [String]) throws -> String {
    guard let programs else { throw Failure(description: "no PostgreSQL") }
    return try execute([programs + "/" + program] + arguments)
  }

  @discardableResult
  private static func execute(_ command: [String]) throws -> String {
    let process = Process()
    prepare(process, command)
    let output = Pipe()
    let errors = Pipe()
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    let text = readAll(output)
    let problem = readAll(errors)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw Failure(description: "\(command[0]): \(String(decoding: problem, as: UTF8.self))")
    }
    return String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// A FileHandle traps if a signal interrupts its reading.
  private static func readAll(_ pipe: Pipe) -> Data {
    var data = Data()
    var bytes = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = read(pipe.fileHandleForReading.fileDescriptor, &bytes, bytes.count)
      if count > 0 {
        data += bytes[..<count]
      } else if count == 0 || errno != EINTR {
        return data
      }
    }
  }

  /// PostgreSQL refuses to run as root.
  private static func prepare(_ process: Process, _ command: [String]) {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
    let user =
      getuid() == 0
      ? ["--reuid", "postgres", "--regid", "postgres", "--clear-groups"] : []
    process.arguments = user + ["--pdeathsig", "KILL"] + command
    process.currentDirectoryURL = URL(fileURLWithPath: "/")
  }
}
