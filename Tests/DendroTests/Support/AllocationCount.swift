#if os(Linux)
  import Foundation
  import Synchronization

  /// Counts what a thread allocates through Swift's runtime, objects, arrays and boxes alike: a cost that
  /// does not depend on the machine.
  ///
  /// It puts itself between the runtime and the system's `malloc`, by the table in which the runtime looks
  /// that up, for the rest of the process: for exit tests only.
  enum AllocationCount {
    fileprivate typealias Allocate = @convention(c) (Int) -> UnsafeMutableRawPointer?

    /// Makes it possible to count.
    ///
    /// - Returns: whether the place to count at was found, and an array is counted.
    static func begin() -> Bool { isCounting }

    private static let isCounting: Bool = {
      original = unsafeBitCast(dlsym(nil, "malloc"), to: Allocate?.self)
      // A handle is the image's `struct link_map`: its base, its name, its dynamic section, …
      guard let image = dlopen("libswiftCore.so", RTLD_NOLOAD | RTLD_NOW).map(UnsafeRawPointer.init)
      else { return false }
      let isPut = putHook(
        base: image.load(as: UInt.self),
        dynamic: image.load(fromByteOffset: 16, as: UnsafeRawPointer.self))
      let counted = during {
        withExtendedLifetime([Int](repeating: 0, count: .random(in: 10...20))) {}
      }
      return isPut && counted > 0
    }()

    /// What `body` allocates on the calling thread. One thread at a time may ask.
    static func during(_ body: () -> Void) -> Int {
      count.store(0, ordering: .relaxed)
      countedThread.store(pthread_self(), ordering: .relaxed)
      body()
      countedThread.store(0, ordering: .relaxed)
      return count.load(ordering: .relaxed)
    }

    /// Puts the hook into the tables of an image.
    private static func putHook(base: UInt, dynamic: UnsafeRawPointer) -> Bool {
      // A table of tags and values, each of 8 bytes, that tag 0 ends.
      var values: [Int: UInt] = [:]
      var entry = dynamic
      while case let tag = entry.load(as: Int.self), tag != 0 {
        values[tag] = entry.load(fromByteOffset: 8, as: UInt.self)
        entry += 16
      }
      guard let symbols = values[6].flatMap(UnsafeRawPointer.init(bitPattern:)),
        let strings = values[5].flatMap(UnsafeRawPointer.init(bitPattern:))
      else { return false }
      var isFound = false
      for (table, size) in [(23, 2), (7, 8)] {  // Of functions called and of addresses taken.
        guard let start = values[table].flatMap(UnsafeRawPointer.init(bitPattern:)) else {
          continue
        }
        for offset in stride(from: 0, to: Int(values[size] ?? 0), by: 24) {
          let symbol = start.load(fromByteOffset: offset + 8, as: UInt.self) >> 32
          let nameOffset = symbols.load(fromByteOffset: Int(symbol) * 24, as: UInt32.self)
          guard symbol != 0, strcmp(strings + Int(nameOffset), "malloc") == 0 else { continue }
          let place = base + start.load(fromByteOffset: offset, as: UInt.self)
          isFound = putHook(at: place) || isFound
        }
      }
      return isFound
    }

    private static func putHook(at place: UInt) -> Bool {
      let page = UInt(sysconf(Int32(_SC_PAGESIZE)))
      guard let slot = UnsafeMutableRawPointer(bitPattern: place),
        mprotect(
          UnsafeMutableRawPointer(bitPattern: place & ~(page - 1)), Int(page),
          PROT_READ | PROT_WRITE) == 0
      else { return false }
      let counted: Allocate = { size in
        if countedThread.load(ordering: .relaxed) == pthread_self() {
          count.wrappingAdd(1, ordering: .relaxed)
        }
        return original?(size)
      }
      slot.storeBytes(of: counted, as: Allocate.self)
      return true
    }
  }

  /// Set before the hook can run.
  private nonisolated(unsafe) var original: AllocationCount.Allocate?
  private let count = Atomic<Int>(0)
  private let countedThread = Atomic<UInt>(0)
#endif
