import Dendro
import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Dispatch
import Foundation
import Synchronization

/// A few threads let loose on one database through its API, and what they saw.
final class HistoryRun: Sendable {
  struct Problem: Error, CustomStringConvertible { var description: String }

  private typealias Call = ObservedHistory.Call
  private typealias Listener = ObservedHistory.Listener

  private let disk: SimulatedDisk
  private let steps: [(number: Int, step: Histories.Step)]
  private let clock = Atomic<Int>(0)
  private let state = Mutex(State())

  private struct State {
    /// By the numbers of their steps.
    var calls: [Int: Call] = [:]
    var listeners: [Int: Listener] = [:]
    var problems: [String] = []
  }

  /// What one thread has to itself.
  private struct Client {
    var listeners: [(number: Int, reference: DatabaseReference, handles: [DatabaseHandle])] = []
    let answers = DispatchGroup()
  }

  /// How long anything may take before it counts as never.
  private static let timeout = DispatchTimeInterval.seconds(120)

  init(seed: UInt64, steps: [(number: Int, step: Histories.Step)]) {
    disk = SimulatedDisk(seed: seed)
    self.steps = steps
  }

  func observed() -> Result<ObservedHistory, Problem> {
    Result {
      let database = try Database.open(
        at: "/database", options: DatabaseOptions(), environment: disk.environment,
        mode: .readWrite)
      try work(on: database)
      var history = state.withLock { state in
        var history = ObservedHistory()
        history.calls = state.calls.values.sorted { $0.number < $1.number }
        history.listeners = state.listeners.sorted { $0.key < $1.key }.map(\.value)
        return history
      }
      try database.synchronize()
      if let engine = database.engine {
        let head = engine.head
        history.tree = head.root
        let reader = try engine.changes(since: .zero)
        while reader.position < head.lsn {
          history.log += try reader.page(upTo: head.lsn).map(\.write)
        }
      }
      try database.close()
      if let problem = state.withLock({ $0.problems.first }) { throw Problem(description: problem) }
      return history
    }.mapError { $0 as? Problem ?? Problem(description: "\($0)") }
  }

  /// Waits until all threads have ended, all calls are answered, and all events are delivered.
  private func work(on database: Database) throws {
    let threads = DispatchGroup()
    for client in Set(steps.map(\.step.client)) {
      threads.enter()
      Thread.detachNewThread { [self] in
        var own = Client()
        for (number, step) in steps where step.client == client {
          run(step.work, number, database, &own)
        }
        wait(for: own.answers, "an answer")
        threads.leave()
      }
    }
    wait(for: threads, "a thread's end")
    // Events come in order: this one is the last.
    let received = DispatchGroup()
    received.enter()
    database.reference().getData { _, _ in received.leave() }
    wait(for: received, "the listeners' events")
  }

  private func wait(for group: DispatchGroup, _ what: String) {
    if group.wait(timeout: .now() + Self.timeout) == .timedOut {
      state.withLock { $0.problems.append("\(what) did not come") }
    }
  }

  private func tick() -> Int {
    clock.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
  }

  private func reference(_ place: ObservedHistory.Place, _ database: Database)
    -> DatabaseReference
  {
    place == .root ? database.reference() : database.reference(withPath: place.rawValue)
  }

  private func run(
    _ work: Histories.Work, _ number: Int, _ database: Database, _ client: inout Client
  ) {
    switch work {
    case .call(let action): call(action, number, database, client.answers)
    case .listen(let place, let kind):
      listen(to: reference(place, database), place, kind, number, &client)
    case .removeListener:
      guard !client.listeners.isEmpty else { return }
      let (listener, reference, handles) = client.listeners.removeFirst()
      let ended = tick()
      state.withLock { $0.listeners[listener]?.ended = ended }
      for handle in handles { reference.removeObserver(withHandle: handle) }
      let removed = tick()
      state.withLock { $0.listeners[listener]?.removed = removed }
    case .wait: wait(for: client.answers, "an answer")
    case .pause(0): sched_yield()
    case .pause(let microseconds): usleep(microseconds)
    }
  }

  // MARK: Calls

  private typealias Answer = @Sendable (DataSnapshot?, (any Error)?) -> Void

  /// Writes down when a call began, returned and was answered.
  private func call(
    _ action: ObservedHistory.Action, _ number: Int, _ answers: DispatchGroup,
    _ body: (@escaping Answer) -> Void
  ) {
    answers.enter()
    let began = tick()
    state.withLock {
      $0.calls[number] = Call(number, action, began: began, returned: .max, answered: .max)
    }
    body { [self] snapshot, error in
      let answered = tick()
      let shown = action.isRead ? snapshot.map { HistoryJudge.text(of: $0.value) } : nil
      state.withLock { state in
        state.calls[number]?.answered = answered
        if let shown { state.calls[number]?.shown = shown }
        if let error { state.problems.append("call \(number), \(action), failed: \(error)") }
      }
      answers.leave()
    }
    let returned = tick()
    state.withLock { $0.calls[number]?.returned = returned }
  }

  private func call(
    _ action: ObservedHistory.Action, _ number: Int, _ database: Database,
    _ answers: DispatchGroup
  ) {
    call(action, number, answers) { answer in
      switch action {
      case .set(let place):
        reference(place, database).setValue(number) { error, _ in answer(nil, error) }
      case .update(let places):
        var values: [AnyHashable: Any] = ["marks/m\(number)": number]
        for place in places { values[place.rawValue] = number }
        database.reference().updateChildValues(values) { error, _ in answer(nil, error) }
      case .clear(let place):
        database.reference().updateChildValues([
          place.rawValue: NSNull(), "marks/m\(number)": number,
        ]) { error, _ in answer(nil, error) }
      case .add:
        reference(.count, database).setValue(ServerValue.increment(number)) { error, _ in
          answer(nil, error)
        }
      case .transact(let place):
        reference(place, database).runTransactionBlock { [self] data in
          let given = HistoryJudge.text(of: data.value)
          state.withLock { $0.calls[number]?.shown = given }
          switch place {
          case .bank:
            let count = (data.value as? [String: Any])?["n"] as? Int ?? 0
            data.value = ["n": count + 1, "last": number]
          case .pair: data.value = ["a": number, "b": number]
          default: data.value = number
          }
          return .success(withValue: data)
        } andCompletionBlock: { error, isCommitted, _ in
          answer(
            nil, error ?? (isCommitted ? nil : Problem(description: "it was not committed")))
        }
      case .abort(let place):
        reference(place, database).runTransactionBlock { _ in
          .abort()
        } andCompletionBlock: { error, _, snapshot in
          answer(snapshot, error)
        }
      case .read(let place):
        reference(place, database).getData { error, snapshot in answer(snapshot, error) }
      case .observe(let place):
        reference(place, database).observeSingleEvent(of: .value) { answer($0, nil) }
      }
    }
  }

  // MARK: Listeners

  private func listen(
    to reference: DatabaseReference, _ place: ObservedHistory.Place, _ kind: Listener.Kind,
    _ number: Int, _ client: inout Client
  ) {
    let began = tick()
    state.withLock { $0.listeners[number] = Listener(place, kind, began: began, returned: .max) }
    let types: [DataEventType] =
      kind == .value ? [.value] : [.childRemoved, .childAdded, .childChanged]
    let handles = types.map { type in
      reference.observe(type) { [self] snapshot in
        let time = tick()
        let text = type == .childRemoved ? "" : HistoryJudge.text(of: snapshot.value)
        state.withLock {
          $0.listeners[number]?.events.append(
            Listener.Event(time, text, key: type == .value ? nil : snapshot.key))
        }
        // Some are slow, so that states wait for them.
        if number % 3 == 0 { usleep(20) }
      }
    }
    let returned = tick()
    state.withLock { $0.listeners[number]?.returned = returned }
    client.listeners.append((number, reference, handles))
  }
}
