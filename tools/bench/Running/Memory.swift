import DendroPlatform
import Foundation

/// The resident memory of the process, after the allocator has returned free memory to the system.
func residentByteCount() -> Int {
  // Only glibc has `malloc_trim`, and its Swift module does not include it.
  if let trim = dlsym(nil, "malloc_trim") {
    _ = unsafeBitCast(trim, to: (@convention(c) (Int) -> Int32).self)(0)
  }
  let fields = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
  let pages = fields.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
  return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
}
