import DendroEngine
import DendroPlatform
import DendroStorage
import DendroTesting
import DendroTree
import Testing

/// What the disk does while a transaction's block runs, step by step.
@Suite("Transactions and the disk")
struct TransactionTests {
  let disk = SimulatedDisk(seed: 1)
  let received = Received<String>()

  private func open() throws -> Engine {
    try Engine.open(at: "/db", options: .inline, environment: disk.environment)
  }

  private func fillDisk() {
    disk.inject(DiskFault(.error(ENOSPC), of: [.write, .preallocate], at: 1, isPermanent: true))
  }

  /// Adds 10 to what is at a; `during` gets the number of the run.
  private func addTen(_ engine: Engine, during: (Int) throws -> Void = { _ in }) throws {
    let place = try path("a")
    var run = 0
    var failure: (any Error)?
    engine.transact(at: place, refused: { [received] in received.add("refused: \($0.name)") }) {
      input in
      run += 1
      do { try during(run) } catch { failure = error }
      received.add("run \(run) on \(input.scalar.map { "\($0)" } ?? "nothing")")
      let sum = Number.integer(10).incrementing(input.scalar)
      return TransactionDecision(Draft(.set(place, Node(sum)))) { [received] result in
        switch result {
        case .success(let node): received.add("is \(node.scalar.map { "\($0)" } ?? "nothing")")
        case .failure(let error): received.add("taken back: \(error.name)")
        }
      }
    }
    if let failure { throw failure }
  }

  private func write(_ engine: Engine, _ number: Int64) throws {
    let draft = try set("a", .integer(number))
    engine.submit(draft) { [received] result in
      if case .failure(let error) = result { received.add("write \(number): \(error.name)") }
    }
  }

  @Test("completes once its write is on the disk, and is there after reopening")
  func durable() throws {
    var engine = try open()
    try write(engine, 1)
    try addTen(engine)
    #expect(received.all == ["run 1 on integer(1)"])
    engine.pump()
    #expect(received.all == ["run 1 on integer(1)", "is integer(11)"])
    #expect(engine.head.lsn == LogSequenceNumber(2))
    try engine.close()
    engine = try open()
    #expect(try engine.view(at: path("a")) == Node(.integer(11)))
    try engine.close()
  }

  @Test("is taken back with the write that it rests on")
  func takenBack() throws {
    let engine = try open()
    try write(engine, 1)
    try addTen(engine)
    fillDisk()
    engine.pump()
    #expect(received.all == ["run 1 on integer(1)", "write 1: full", "taken back: full"])
    #expect(engine.head.root.isEmpty)
    disk.removeFaults()
    try engine.close()
  }

  @Test("is refused if what it was given is taken back meanwhile and the disk stays full")
  func fullMeanwhile() throws {
    let engine = try open()
    try write(engine, 1)
    try addTen(engine) { _ in
      fillDisk()
      engine.pump()
    }
    engine.pump()
    #expect(received.all == ["write 1: full", "run 1 on integer(1)", "refused: full"])
    #expect(engine.head.root.isEmpty)
    disk.removeFaults()
    try engine.close()
  }

  @Test("runs again if what it was given is taken back meanwhile and there is room again")
  func roomMeanwhile() throws {
    let engine = try open()
    try write(engine, 1)
    try addTen(engine) { run in
      guard run == 1 else { return }
      fillDisk()
      engine.pump()
      disk.removeFaults()
      // Refused, but it makes the engine look for room.
      try write(engine, 2)
      engine.pump()
    }
    engine.pump()
    #expect(
      received.all == [
        "write 1: full", "write 2: full", "run 1 on integer(1)", "run 2 on nothing",
        "is integer(10)",
      ])
    try engine.close()
  }

  @Test("is refused if the disk was lost meanwhile")
  func poisonedMeanwhile() throws {
    let engine = try open()
    try write(engine, 1)
    try addTen(engine) { _ in
      disk.inject(.failedSynchronize(at: 1, pages: .kept))
      engine.pump()
    }
    engine.pump()
    #expect(received.all == ["write 1: poisoned", "run 1 on integer(1)", "refused: poisoned"])
    #expect(throws: EngineError.self) { try engine.close() }
  }

  @Test("that aborts completes in order, and its input may be undone before")
  func abandoned() throws {
    let engine = try open()
    let place = try path("a")
    for isFull in [false, true] {
      try write(engine, isFull ? 2 : 1)
      engine.transact(at: place, refused: { [received] in received.add("refused: \($0.name)") }) {
        input in
        TransactionDecision(nil) { [received] result in
          switch result {
          case .success(let node): received.add("gave up on \(node.scalar!)")
          case .failure(let error): received.add("taken back: \(error.name)")
          }
        }
      }
      if isFull { fillDisk() }
      engine.pump()
    }
    #expect(received.all == ["gave up on integer(1)", "write 2: full", "taken back: full"])
    disk.removeFaults()
    try engine.close()
  }

  @Test("is refused by an engine that is closed or only reads")
  func refused() throws {
    let engine = try open()
    try write(engine, 1)
    try engine.close()
    try addTen(engine)
    let reader = try Engine.open(
      at: "/db", options: .inline, environment: disk.environment, mode: .readOnly)
    try addTen(reader)
    #expect(received.all == ["refused: closed", "refused: read-only"])
    try reader.close()
  }
}

extension EngineError {
  fileprivate var name: String {
    switch self {
    case .diskFull: "full"
    case .poisoned: "poisoned"
    case .closed: "closed"
    case .readOnly: "read-only"
    default: description
    }
  }
}
