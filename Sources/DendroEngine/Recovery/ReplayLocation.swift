import Dispatch
import DendroStorage
package import DendroTree

/// A location of which alone the value is wanted. It depends on the writes at it, above it and below it: no other
/// write adds, changes or removes anything there.
package struct ReplayLocation {
  private let storedPath: [UInt8]

  package init(_ path: Path) { storedPath = path.storedBytes }

  /// Whether a write at this path may change what is at the location.
  ///
  /// Each key is stored with its length in front, so that one path begins with the bytes of another only where
  /// it begins with its keys.
  func isConcerned(by path: UnsafeRawBufferPointer) -> Bool {
    storedPath.withUnsafeBytes { own in
      PathCoding.sharedPrefixCount(own, path) == min(own.count, path.count)
    }
  }

  /// The write with those of its entries that concern the location, where it is an update; else the write itself.
  func part(of write: Write) -> Write {
    guard case .update(let base, let entries) = write else { return write }
    return .update(
      base,
      entries.filter { entry in
        base.appending(entry.path).storedBytes.withUnsafeBytes { isConcerned(by: $0) }
      })
  }

  /// Whether a record's payload is nothing but the set of one leaf that does not concern the location. Where it is
  /// something else, or wrong, `WriteReader` reads it.
  func isPassedOver(by payload: UnsafeRawBufferPointer) -> Bool {
    // A write's time, as its record's; its kind; a path of so many bytes.
    guard payload.count > 4, payload[0] == 0, payload[1] == WriteCoding.Kind.set, payload[2] == 0,
      payload[3] < 0x80
    else { return false }
    let pathEnd = 4 + Int(payload[3])
    guard pathEnd < payload.count,
      !isConcerned(by: UnsafeRawBufferPointer(rebasing: payload[4..<pathEnd]))
    else { return false }
    return PackedScalar.leafEnd(validating: payload, at: pathEnd) == payload.count
  }

  /// How the log is read by two threads for this location; nil for the root, which every write concerns.
  var parallelReading: ParallelReading? {
    guard !storedPath.isEmpty else { return nil }
    return ParallelReading(
      run: { body in
        let isDone = DispatchSemaphore(value: 0)
        DispatchQueue(label: "dendro-recovery", autoreleaseFrequency: .workItem).async {
          body()
          isDone.signal()
        }
        return { isDone.wait() }
      },
      makeFilter: { LocationFilter(self) })
  }
}

/// Wants the records that may have a write which concerns a location.
private final class LocationFilter: RecordFilter {
  private let location: ReplayLocation
  private var reader = WriteReader(
    UnsafeRawBufferPointer(start: nil, count: 0), firstLSN: .zero, baseTime: 0)

  init(_ location: ReplayLocation) { self.location = location }

  func wants(_ record: RecordInfo, _ payload: UnsafeRawBufferPointer) -> Bool {
    if record.count == 1, location.isPassedOver(by: payload) { return false }
    reader.restart(payload, firstLSN: record.firstLSN, baseTime: record.baseTime)
    do throws(CodingError) {
      for _ in 0..<record.count {
        guard try reader.skipNext(unlessItConcerns: location) else { return true }
      }
    } catch {
      return true
    }
    return !reader.isAtEnd
  }
}
