import DendroPlatform
import DendroStorage
import DendroTesting
import Testing

/// The simulated disk behaves as the calls of a real one do.
@Suite struct DiskCallTests {
  let disk = SimulatedDisk(seed: 1)

  @Test func openingModes() throws {
    #expect(throws: SystemError.noSuchFile) { try disk.open("/f", .read) }
    #expect(throws: SystemError.noSuchFile) { try disk.open("/f", .readWrite) }
    _ = try disk.open("/f", .create)
    #expect(throws: SystemError.exists) { try disk.open("/f", .create) }
    _ = try disk.open("/f", .openOrCreate)
    _ = try disk.open("/g", .openOrCreate)
    #expect(disk.names(in: "/") == ["f", "g"])
    let reader = try disk.open("/f", .read)
    #expect(throws: SystemError(EBADF)) { try reader.put("a") }
    #expect(throws: SystemError.noSuchFile) { try disk.open("/d/f", .create) }
    #expect(throws: SystemError(ENOTDIR)) { try disk.open("/f/f", .create) }
  }

  @Test func directories() throws {
    try disk.createDirectory("/d")
    #expect(throws: SystemError.exists) { try disk.createDirectory("/d") }
    #expect(throws: SystemError.noSuchFile) { try disk.createDirectory("/e/d") }
    #expect(throws: SystemError.noSuchFile) { try disk.list("/e") }
    _ = try disk.make("/d/f")
    #expect(try disk.list("/d/") == ["f"])
    #expect(throws: SystemError(ENOTEMPTY)) { try disk.remove("/d") }
    try disk.remove("/d/f")
    try disk.remove("/d")
    #expect(try disk.list("/") == [])
    #expect(throws: SystemError.noSuchFile) { try disk.remove("/d") }
    #expect(throws: SystemError.noSuchFile) { try disk.synchronizeDirectory("/d") }
  }

  @Test func renameReplacesAndKeepsTheIdentity() throws {
    let a = try disk.make("/a")
    try a.put("a")
    _ = try disk.make("/b")
    let identity = try a.identity()
    try disk.rename("/a", to: "/b")
    #expect(try disk.identity("/b") == identity)
    #expect(disk.names(in: "/") == ["b"])
    #expect(throws: SystemError.noSuchFile) { try disk.rename("/a", to: "/c") }
    try disk.createDirectory("/d")
    #expect(throws: SystemError(EISDIR)) { try disk.rename("/b", to: "/d") }
    #expect(throws: SystemError(ENOTDIR)) { try disk.rename("/d", to: "/b") }
  }

  @Test func aRemovedFileLivesAsLongAsItsHandle() throws {
    let file = try disk.make("/f")
    let identity = try file.identity()
    try file.put("abc")
    try disk.remove("/f")
    #expect(try file.get(9) == "abc")
    let again = try disk.make("/f")
    #expect(try again.identity() != identity)
    #expect(try again.size() == 0)
  }

  @Test func readsEndAtTheEndAndHolesAreZeros() throws {
    let file = try disk.make("/f")
    try file.put("abc", at: 5000)
    #expect(try file.size() == 5003)
    #expect(try file.get(10, at: 4998) == "\0\0abc")
    #expect(try file.get(10, at: 5003) == "")
    #expect(try file.get(10, at: .max) == "")
    try file.truncate(to: 5001)
    try file.truncate(to: 5003)
    #expect(try file.get(10, at: 5000) == "a\0\0")
    try file.preallocate(from: 0, count: 100)
    #expect(try file.size() == 5003)
    try file.preallocate(from: 5003, count: 10)
    #expect(try file.size() == 5013)
    #expect(throws: SystemError(EFBIG)) { try file.put("a", at: .max - 10) }
    #expect(throws: SystemError(EFBIG)) { try file.preallocate(from: .max, count: 10) }
    #expect(throws: SystemError(EFBIG)) { try file.truncate(to: .max) }
  }

  @Test func locksAreHeldByHandlesAndGoWithThem() throws {
    _ = try disk.make("/f")
    var first: (any File)? = try disk.open("/f", .read)
    let second = try disk.open("/f", .read)
    #expect(try first!.lock(.exclusive))
    #expect(try !second.lock(.exclusive))
    #expect(try !second.lock(.shared))
    #expect(try first!.lock(.shared))
    #expect(try second.lock(.shared))
    // A conversion that fails has given up what it had.
    #expect(try !second.lock(.exclusive))
    #expect(try first!.lock(.exclusive))
    first = nil
    #expect(try second.lock(.exclusive))
  }

  /// The pages of an image against one plain array.
  @Test(arguments: 0..<20 as Range<UInt64>) func contentAgreesWithAnArray(seed: UInt64) throws {
    var random = SeededRandomness(seed: seed)
    let file = try disk.make("/\(seed)")
    var model: [UInt8] = []
    for _ in 0..<200 {
      let place = Int.random(in: 0...20_000, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0, 1:
        let bytes = (0..<Int.random(in: 1...9000, using: &random)).map {
          UInt8(truncatingIfNeeded: $0)
        }
        #expect(try bytes.withUnsafeBytes { try file.write($0, at: UInt64(place)) } == bytes.count)
        let end = place + bytes.count
        if model.count < end { model += Array(repeating: 0, count: end - model.count) }
        model.replaceSubrange(place..<end, with: bytes)
      case 2:
        try file.truncate(to: UInt64(place))
        if place < model.count { model.removeSubrange(place...) }
        model += Array(repeating: 0, count: place - model.count)
      default:
        try file.preallocate(from: UInt64(place), count: 100)
        model += Array(repeating: 0, count: max(0, place + 100 - model.count))
      }
      #expect(try file.size() == UInt64(model.count))
    }
    #expect(disk.contents(of: "/\(seed)") == model)
  }

  @Test func damageBehindTheBack() throws {
    let file = try disk.make("/f")
    try file.put("abc")
    let copy = disk.copy()
    #expect(copy.flipBit(8, of: "/f"))
    #expect(copy.text("/f") == "acc")
    #expect(!copy.flipBit(24, of: "/f"))
    #expect(!copy.flipBit(0, of: "/g"))
    #expect(copy.overwrite("/f", at: 2, with: [0x78, 0x79]))
    #expect(copy.text("/f") == "acxy")
    #expect(copy.resize("/f", to: 1))
    #expect(copy.crashPoint().outcomes { $0.text("/f") } == ["a"])
    #expect(copy.erase("/f"))
    #expect(!copy.erase("/f"))
    #expect(copy.names(in: "/") == [])
    #expect(disk.text("/f") == "abc")
    #expect(disk.totalSize == 3)
  }
}
