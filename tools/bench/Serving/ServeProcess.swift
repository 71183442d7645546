import DendroPlatform
import Foundation

/// `dendro serve` as a process of its own.
final class ServeProcess {
  let port: UInt16
  /// From the start of the process to the answer to its first request.
  let secondsToFirstAnswer: Double
  private let process = Process()
  private let life = Pipe()

  /// Starts a server, and waits until it has answered a request.
  ///
  /// - Parameters:
  ///   - durability: as the command takes it; nil for what it does without.
  ///   - options: more of the command's.
  ///   - cluster: the address of the PostgreSQL in which the databases are; nil for a server alone.
  init(
    at directory: URL, durability: String? = "every-commit",
    options: [String] = ["--sessions", "20000", "--per-address", "20000"],
    cluster: String? = nil
  ) throws {
    raiseDescriptorLimit()
    let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    let command = own.deletingLastPathComponent().appendingPathComponent("dendro")
    guard FileManager.default.isExecutableFile(atPath: command.path) else {
      throw ServeError(description: "\(command.path) is not built: swift build --product dendro")
    }
    let output = Pipe()
    // The server must not outlive this process, however that ends: the shell kills it once the pipe that it
    // reads is closed.
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = [
      "-c", "trap '' INT TERM HUP; \"$@\" & echo $!; read end; kill -9 $!; wait", "dendro",
      command.path, "serve", directory.path, "--port", "0", "--json", "--quiet",
    ]
    if let durability { process.arguments? += ["--durability", durability] }
    if let cluster {
      process.environment = ProcessInfo.processInfo.environment.merging(
        ["DENDRO_CLUSTER": cluster]) { $1 }
    }
    process.arguments? += options
    process.standardInput = life
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    unblockChildSignals()
    let start = ContinuousClock.now
    try process.run()
    var lines = Data()
    while lines.count(where: { $0 == UInt8(ascii: "\n") }) < 2 {
      let part = output.fileHandleForReading.availableData
      guard !part.isEmpty else { throw ServeError(description: "dendro serve has not started") }
      lines += part
    }
    // The shell's line and the server's may come in any order.
    let text = lines.split(separator: UInt8(ascii: "\n")).map {
      String(decoding: $0, as: UTF8.self)
    }
    let ready = try text.first { $0.hasPrefix("{") }.flatMap {
      try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
    }
    guard let port = (ready?["port"] as? Int).flatMap(UInt16.init(exactly:)),
      let id = text.first(where: { !$0.hasPrefix("{") }).flatMap({ Int32($0) })
    else { throw ServeError(description: "dendro serve has not said where it is") }
    self.port = port
    processID = id
    let connection = try LoadConnection(port: port)
    _ = try connection.call(HTTPRequest.get("first"))
    secondsToFirstAnswer = (ContinuousClock.now - start) / .seconds(1)
  }

  let processID: Int32

  /// How many files and sockets it has open.
  var descriptorCount: Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(processID)/fd").count) ?? 0
  }

  /// Kills it.
  func stop() {
    try? life.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  var residentByteCount: Int { ServeProcess.residentByteCount(of: processID) }

  /// CPU time so far.
  var processorSeconds: Double {
    let text = (try? String(contentsOfFile: "/proc/\(processID)/stat", encoding: .utf8)) ?? ""
    // Behind the name: the state is the first field, and the user's time the twelfth.
    let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
    guard fields.count > 12 else { return 0 }
    let ticks = (Double(fields[11]) ?? 0) + (Double(fields[12]) ?? 0)
    return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  static func residentByteCount(of process: Int32) -> Int {
    let text = (try? String(contentsOfFile: "/proc/\(process)/statm", encoding: .utf8)) ?? ""
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

}

/// Lets the shells that this thread starts hear of the ends of their children, without which their `wait` may not return:
/// they inherit that the signal is blocked, as it is on the threads of dispatch queues.
private func unblockChildSignals() {
  var signals = sigset_t()
  sigemptyset(&signals)
  sigaddset(&signals, SIGCHLD)
  pthread_sigmask(SIG_UNBLOCK, &signals, nil)
}

/// Lets this process and those that it starts have as many descriptors as the system allows: each connection needs
/// one at both ends.
func raiseDescriptorLimit() {
  var limit = rlimit()
  getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  limit.rlim_cur = limit.rlim_max
  setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}

struct ServeError: Error, CustomStringConvertible {
  let description: String
}
