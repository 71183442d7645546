import DendroPlatform
import Foundation

/// The machine and the time of a measurement.
struct Machine: Encodable, CustomStringConvertible {
  let date: String
  let processor: String
  let coreCount: Int
  let memoryByteCount: UInt64
  let system: String
  let fileSystem: String
  /// The load average of the minute before the start.
  let load: Double

  init(workspace: URL) {
    let formatter = ISO8601DateFormatter()
    formatter.formatOptions = [.withInternetDateTime]
    date = formatter.string(from: Date())
    coreCount = ProcessInfo.processInfo.activeProcessorCount
    memoryByteCount = ProcessInfo.processInfo.physicalMemory
    let information = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
    let model = information.split(separator: "\n").first { $0.hasPrefix("model name") }
    processor =
      model.flatMap { $0.split(separator: ":").last }.map {
        $0.trimmingCharacters(in: .whitespaces)
      } ?? "unknown processor"
    let release = (try? String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8)) ?? ""
    system = "Linux " + release.trimmingCharacters(in: .whitespacesAndNewlines)
    fileSystem = Machine.fileSystem(at: workspace.path)
    var loads = [0.0]
    load = getloadavg(&loads, 1) == 1 ? loads[0] : 0
  }

  /// The file system type of the mount that contains `path`.
  private static func fileSystem(at path: String) -> String {
    let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path + "/"
    let mounts = (try? String(contentsOfFile: "/proc/self/mounts", encoding: .utf8)) ?? ""
    var best = (point: "", type: "unknown file system")
    for line in mounts.split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard fields.count > 2 else { continue }
      let point = fields[1] == "/" ? "/" : fields[1] + "/"
      // A later mount covers an earlier one at the same point.
      if path.hasPrefix(point), point.count >= best.point.count {
        best = (String(point), String(fields[2]))
      }
    }
    return best.type
  }

  var description: String {
    let gibibytes = Double(memoryByteCount) / Double(1 << 30)
    return """
      \(date), \(processor), \(coreCount) cores, \(Int(gibibytes.rounded())) GiB, \(system), \
      \(fileSystem), load \(String(format: "%.1f", load))
      """
  }
}
