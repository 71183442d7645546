#if canImport(CDendroRedis)
  import DendroPlatform
  import Foundation

  /// A Redis server of its own, which listens on a unix socket in a temporary folder.
  final class RedisServer {
    enum Persistence {
      case appendOnly(PeerDurability)
      case snapshot
      case none
    }

    let socket: String
    private let process: Process
    private let life: Pipe
    private let folder: URL

    /// - Parameter directory: for its files; it exists.
    init(at directory: URL, _ persistence: Persistence) throws {
      raiseDescriptorLimit()
      // Not in `directory`: the path of a socket has at most 107 bytes.
      folder = URL(
        fileURLWithPath: "/tmp/dendro-redis-\(ProcessInfo.processInfo.processIdentifier)")
      try? FileManager.default.removeItem(at: folder)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      socket = folder.appendingPathComponent("socket").path
      var arguments = [
        "--port", "0", "--unixsocket", socket, "--dir", directory.path, "--save", "",
        "--loglevel", "warning", "--maxclients", "12000",
      ]
      switch persistence {
      case .appendOnly(let durability):
        // The file is not written again while it is measured.
        arguments += [
          "--appendonly", "yes", "--appendfsync", durability == .durable ? "always" : "everysec",
          "--auto-aof-rewrite-percentage", "0",
        ]
      case .snapshot:
        // Loaded fastest: neither compressed nor checked.
        arguments += ["--appendonly", "no", "--rdbcompression", "no", "--rdbchecksum", "no"]
      case .none: arguments += ["--appendonly", "no"]
      }
      life = Pipe()
      process = Process()
      // The server must not outlive this process, however that ends: the shell kills it once the pipe that it
      // reads is closed.
      process.executableURL = URL(fileURLWithPath: "/bin/sh")
      process.arguments =
        ["-c", "trap '' INT TERM HUP; redis-server \"$@\" & read end; kill -9 $!; wait", "redis"]
        + arguments
      process.standardInput = life
      process.standardOutput = FileHandle.nullDevice
      try process.run()
    }

    /// Kills it. What it has answered is with the system by then.
    func stop() {
      try? life.fileHandleForWriting.close()
      process.waitUntilExit()
      try? FileManager.default.removeItem(at: folder)
    }

    /// Returns a connection as soon as the server accepts one and has loaded its files.
    func connect() throws -> RedisConnection {
      let deadline = ContinuousClock.now + .seconds(60)
      while true {
        if let connection = try? RedisConnection(socket) {
          // While it loads, the server answers with an error.
          if (try? connection.command("PING")) != nil { return connection }
        }
        guard ContinuousClock.now < deadline, process.isRunning else {
          throw PeerError(peer: "redis", message: "the server does not answer")
        }
        usleep(200)
      }
    }
  }
#endif
