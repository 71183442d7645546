import DendroTestSupport
import DendroTree
import Testing

@testable import Dendro

/// How much a client has registered for its end.
@Suite("On disconnect: what is registered is counted")
struct DisconnectCountTests {
  @Test("up and down, as if it was counted anew", arguments: 0..<UInt64(40))
  func counted(seed: UInt64) {
    var generator = WriteGenerator(seed: seed)
    var operations = DisconnectOperations()
    for round in 0..<60 {
      let write = generator.write()
      if generator.random.below(4) == 0 {
        operations.cancel(write.path)
      } else {
        operations.add(Draft(write))
      }
      #expect(
        operations.byteCount == operations.countedByteCount,
        "seed \(seed), round \(round): \(write)")
    }
    operations.cancel(.root)
    #expect(operations.byteCount == 0 && operations.isEmpty)
  }

  @Test("a string as priority counts with its length")
  func priorities() throws {
    var operations = DisconnectOperations()
    let long = Scalar.string(String(repeating: "p", count: 10_000))
    let path = try Path(parsing: "a")
    let isFirstKept = operations.add(Draft(.setPriority(path, long)), upTo: 20_000)
    #expect(isFirstKept)
    let isSecondKept = operations.add(
      Draft(.setPriority(try Path(parsing: "b"), long)), upTo: 20_000)
    #expect(!isSecondKept)
    // It takes the place of the first one.
    let isReplaced = operations.add(Draft(.setPriority(path, long)), upTo: 12_000)
    #expect(isReplaced)
  }

  @Test("cancelling a part of a value is refused where its other parts would take too much")
  func parts() throws {
    var value = Node.empty
    for number in 0..<1_000 {
      value.graft(Node(.integer(1)), at: try Path(parsing: "k\(number)"))
    }
    var operations = DisconnectOperations()
    let isKept = operations.add(Draft(.set(try Path(parsing: "a"), value)), upTo: 50_000)
    #expect(isKept)
    let isSplitWithin = operations.cancel(try Path(parsing: "a/k1"), upTo: 50_000)
    #expect(!isSplitWithin)
    let isSplit = operations.cancel(try Path(parsing: "a/k1"), upTo: 500_000)
    #expect(isSplit)
  }
}
