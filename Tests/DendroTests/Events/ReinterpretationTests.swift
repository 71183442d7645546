import DendroTestSupport
import DendroTree
import Testing

@testable import Dendro

/// What the library relies on where it reads values by their form in memory.
@Suite("Values of one form in memory")
struct ReinterpretationTests {
  private static let database = Database.inMemory()

  @Test("a block with an isolation is called like one without, whatever it captures and takes")
  func blocks() throws {
    let snapshot = DataSnapshot(Node(.integer(7)), at: Self.database.reference())
    let seen = Shared<[String]>([])
    let number = 3
    let text = "captured"

    let plain: @Sendable @isolated(any) (DataSnapshot, String?) -> Void = { snapshot, key in
      seen.withLock { $0.append("\(text) \(number) \(snapshot.int ?? 0) \(key ?? "nil")") }
    }
    let event = Callback<EventFunction>(plain)
    #expect(event.isolation == nil)
    event.call(snapshot, "key")
    event.call(snapshot, nil)
    Callback<EventFunction>({ (snapshot: DataSnapshot) in
      seen.withLock { $0.append("\(text) \(snapshot.int ?? 0)") }
    }).call(snapshot, "key")
    Callback<CancelFunction>({ (error: any Error) in
      seen.withLock { $0.append("\(text) \((error as? DatabaseError)?.code == .closed)") }
    }).call(DatabaseError.closed)
    Callback<ReadFunction>({ (error: (any Error)?, snapshot: DataSnapshot) in
      seen.withLock { $0.append("\(error == nil) \(snapshot.int ?? 0)") }
    }).call(nil, snapshot)
    Callback<CompletionFunction>({ (error: (any Error)?, reference: DatabaseReference) in
      seen.withLock { $0.append("\(error == nil) \(reference.key ?? "root")") }
    }).call(DatabaseError.closed, Self.database.reference(withPath: "a"))
    Callback<CompletionFunction>({ (error: (any Error)?) in
      seen.withLock { $0.append("\(number) \(error == nil)") }
    }).call(nil, Self.database.reference())
    Callback<TransactionFunction>({
      (error: (any Error)?, isCommitted: Bool, result: DataSnapshot?) in
      seen.withLock { $0.append("\(error == nil) \(isCommitted) \(result?.int ?? 0)") }
    }).call(nil, true, snapshot)
    #expect(
      seen.value == [
        "captured 3 7 key", "captured 3 7 nil", "captured 7", "captured true", "true 7", "false a",
        "3 true", "true true 7",
      ])
  }

  @Test("a block of an actor, and of the main actor, keeps its actor and what it captures")
  @MainActor
  func isolatedBlocks() async {
    let snapshot = DataSnapshot(Node(.integer(7)), at: Self.database.reference())
    let sum = Shared(0)
    let main = Callback<EventFunction>({ @MainActor (snapshot: DataSnapshot, _: String?) in
      MainActor.assertIsolated()
      sum.withLock { $0 += snapshot.int ?? 0 }
    })
    #expect(main.isolation === MainActor.shared)
    main.call(snapshot, nil)
    main.call(snapshot, "key")
    #expect(sum.value == 14)
    let adder = Adder()
    #expect(await adder.sum(of: snapshot) == 7)
  }

  private actor Adder {
    private var sum = 0

    func sum(of snapshot: DataSnapshot) -> Int {
      let callback = Callback<EventFunction>({ (snapshot: DataSnapshot, _: String?) in
        self.assumeIsolated { $0.sum += snapshot.int ?? 0 }
      })
      callback.call(snapshot, nil)
      return sum
    }
  }

  @Test("an optional reference is one word, 0 for nil, whether it is counted or not")
  func references() {
    let words = (0..<5).map { $0 % 2 == 0 ? Word(number: $0) : nil }
    #expect(MemoryLayout<Word?>.size == MemoryLayout<UInt>.size)
    #expect(MemoryLayout<Unmanaged<Word>?>.stride == MemoryLayout<Word?>.stride)
    var numbers: [Int?] = []
    Reinterpretation.elements(of: words, as: Unmanaged<Word>?.self) { words in
      for word in words { numbers.append(word.map { $0.takeUnretainedValue().number }) }
    }
    #expect(numbers == [0, nil, 2, nil, 4])
    var bits: [UInt] = []
    Reinterpretation.elements(of: words, as: UInt.self) { bits = Array($0) }
    #expect(
      bits
        == words.map { word in
          word.map { UInt(bitPattern: Unmanaged.passUnretained($0).toOpaque()) } ?? 0
        })
  }

  private final class Word {
    let number: Int

    init(number: Int) { self.number = number }
  }
}
