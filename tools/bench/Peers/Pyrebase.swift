import Foundation

/// pyrebase4, a Python client of Firebase's Realtime Database, which speaks REST and listens to a stream.
///
/// It is no part of a build: the environment names the interpreter.
enum Pyrebase {
  /// What `pyrebase_peer.py` does.
  enum Work: String {
    /// Sets, each until a listener has it.
    case sets
    /// Puts, one after the other.
    case puts
  }

  static func contestant(_ work: Work, count: Int) -> Contestant {
    var contestant = Contestant(work == .sets ? "pyrebase4, its stream" : "pyrebase4") { turn in
      try Workload.withServer(turn) { server in
        let count = turn.scaled(count)
        let before = server.processorSeconds
        let printed = try run([
          script, "http://127.0.0.1:\(server.port)", work.rawValue, "\(count)",
        ])
        let took = try JSONDecoder().decode(Took.self, from: printed)
        var measurement = Measurement(
          count: count,
          cost: Cost(seconds: took.seconds, processorSeconds: took.processorSeconds))
        measurement.serverProcessorSeconds = server.processorSeconds - before
        measurement.addLatencies(took.latencies)
        return measurement
      }
    }
    contestant.lack = { lack }
    return contestant
  }

  /// What the script prints.
  private struct Took: Decodable {
    let seconds: Double
    let processorSeconds: Double
    let latencies: [Double]
  }

  private static let variable = "DENDRO_BENCH_PYTHON"
  private static let python = ProcessInfo.processInfo.environment[variable] ?? ""
  private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("pyrebase_peer.py").path

  private static let lack: String? = {
    if python.isEmpty { return "\(variable) names no Python interpreter" }
    guard FileManager.default.fileExists(atPath: script) else { return "\(script) is missing" }
    do {
      _ = try run(["-c", "import pyrebase"])
      return nil
    } catch {
      return "\(python) cannot import it: \(error)"
    }
  }()

  /// - Returns: what Python prints.
  private static func run(_ arguments: [String]) throws -> Data {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: python)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let printed = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      throw PeerError(peer: "pyrebase4", message: "Python ended with \(process.terminationStatus)")
    }
    return printed
  }
}
