import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// What the figures were measured on, and when.
struct Machine: Encodable, CustomStringConvertible {
  let date: String
  let processor: String
  let coreCount: Int
  let memoryByteCount: UInt64
  let system: String
  let fileSystem: String
  /// The mean number of processes that wanted a core in the last minute before the start.
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

  private static func fileSystem(at path: String) -> String {
    var status = statfs()
    guard statfs(path, &status) == 0 else { return "unknown file system" }
    switch UInt64(bitPattern: Int64(status.f_type)) & 0xFFFF_FFFF {
    case 0xEF53: return "ext4"
    case 0x0102_1994: return "tmpfs"
    case 0x5846_5342: return "xfs"
    case 0x9123_683E: return "btrfs"
    case 0x794C_7630: return "overlayfs"
    case let other: return "file system 0x" + String(other, radix: 16)
    }
  }

  var description: String {
    let gibibytes = Double(memoryByteCount) / Double(1 << 30)
    return """
      \(date), \(processor), \(coreCount) cores, \(Int(gibibytes.rounded())) GiB, \(system), \
      \(fileSystem), load \(String(format: "%.1f", load))
      """
  }
}
