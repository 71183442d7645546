import DendroCrashHarness
import DendroTree
import Testing

/// The judge of histories must find the error: each of these histories has one thing that is impossible.
@Suite struct HistoryJudgeTests {
  private typealias Call = ObservedHistory.Call
  private typealias Listener = ObservedHistory.Listener

  /// Two sets of `pair/a`, one after the other, and what is made of the history besides.
  private func history(_ change: (inout ObservedHistory) -> Void = { _ in }) -> ObservedHistory {
    var history = ObservedHistory()
    history.calls = [
      Call(1, .set(.a), began: 10, returned: 11, answered: 30),
      Call(2, .set(.a), began: 20, returned: 21, answered: 31),
    ]
    history.log = [
      .set(ObservedHistory.Place.a.path, Node(.integer(1))),
      .set(ObservedHistory.Place.a.path, Node(.integer(2))),
    ]
    change(&history)
    for write in history.log { _ = history.tree.apply(write) }
    return history
  }

  private func problems(_ change: (inout ObservedHistory) -> Void = { _ in }) -> [String] {
    HistoryJudge(history(change)).problems
  }

  @Test func whatIsRightIsRight() {
    #expect(problems() == [])
    #expect(
      problems { history in
        history.calls += [
          Call(3, .read(.a), began: 12, returned: 13, answered: 40, shown: "1"),
          Call(4, .observe(.a), began: 12, returned: 13, answered: 40, shown: "2"),
          Call(5, .transact(.bank), began: 1, returned: 2, answered: 50, shown: ""),
        ]
        var bank = Node.empty
        bank.graft(Node(.integer(1)), at: Path("n"))
        bank.graft(Node(.integer(5)), at: Path("last"))
        history.log.append(.set(ObservedHistory.Place.bank.path, bank))
        history.listeners = [
          Listener(
            .a, .value, began: 5, returned: 6,
            events: [.init(7, ""), .init(22, "1"), .init(23, "2")]),
          Listener(
            .pair, .children, began: 5, returned: 6,
            events: [.init(22, "1", key: "a"), .init(23, "2", key: "a")]),
        ]
      } == [])
  }

  @Test func writes() {
    #expect(problems { $0.log.swapAt(0, 1) }.contains { $0.contains("was done before call 2") })
    #expect(problems { $0.log.removeLast() }.contains { $0.contains("is not in the log") })
    #expect(
      problems { $0.log.append($0.log[1]) }.contains { $0.contains("was written as 2 and as 3") })
    #expect(
      problems { $0.log.append(.remove(Path("pair"))) }.contains { $0.contains("is in no call") })
    #expect(
      problems { $0.log[1] = .set(Path("pair/b"), Node(.integer(2))) }
        .contains { $0.contains("of call 2 is") })
    // Both at the same time: either order will do, if they are answered in it.
    #expect(
      problems {
        $0.calls[0].returned = 20
        $0.calls[0].answered = 32
        $0.log.swapAt(0, 1)
      } == [])
    #expect(
      problems { $0.calls[0].answered = 32 }.contains { $0.contains("was answered before call 1") })
  }

  @Test(arguments: [
    // Not yet there, no longer there, and what the first of two reads saw is before what the second saw.
    [(22, 23, "1")], [(12, 13, "2")], [(12, 13, "")], [(5, 6, "1")],
    [(12, 22, "2"), (23, 24, "1")],
  ])
  func reads(_ reads: [(began: Int, returned: Int, shown: String)]) {
    let problems = problems { history in
      for (index, read) in reads.enumerated() {
        history.calls.append(
          Call(
            index + 3, .read(.a), began: read.began, returned: read.returned, answered: 99,
            shown: read.shown))
      }
    }
    #expect(problems.count == 1)
    #expect(problems.first?.contains("which was not there") == true)
  }

  /// Two reads during one long write: the later one may not see less.
  @Test func aReadDoesNotGoBackBehindAnother() {
    func problems(_ first: String, _ second: String) -> [String] {
      self.problems { history in
        history.calls[1].began = 12
        history.calls += [
          Call(3, .read(.a), began: 13, returned: 14, answered: 14, shown: first),
          Call(4, .read(.a), began: 15, returned: 16, answered: 16, shown: second),
        ]
      }
    }
    #expect(problems("1", "2") == [])
    #expect(problems("2", "2") == [])
    #expect(problems("2", "1").count == 1)
  }

  @Test func transactions() {
    func problems(given shown: String) -> [String] {
      self.problems { history in
        history.calls[1] = Call(
          2, .transact(.a), began: 20, returned: 21, answered: 31, shown: shown)
      }
    }
    #expect(problems(given: "1") == [])
    #expect(problems(given: "").contains { $0.contains("but 1 was there") })
    let order = self.problems { history in
      history.calls = [
        Call(1, .transact(.a), began: 10, returned: 11, answered: 90, shown: ""),
        Call(2, .transact(.a), began: 12, returned: 13, answered: 90, shown: "1"),
      ]
      history.calls.swapAt(0, 1)
      history.calls[0].began = 1
      history.calls[0].returned = 2
    }
    #expect(order.contains { $0.contains("was started before") })
  }

  @Test(arguments: [
    // A gap, a wrong order, one that never was, nothing at all, an end that is missing, the past.
    ["", "2"], ["", "2", "1"], ["", "1", "7"], [], ["", "1"], ["2", "1", "2"],
  ])
  func listeners(_ received: [String]) {
    let events = received.enumerated().map { Listener.Event(7 + 10 * $0.offset, $0.element) }
    let problems = problems {
      $0.listeners = [Listener(.a, .value, began: 5, returned: 6, events: events)]
    }
    #expect(problems.count == 1, "\(problems)")
  }

  @Test(arguments: [["2"], ["1"], ["2", "1"], ["1", "2", "2"], []])
  func childrenListeners(_ received: [String]) {
    let events = received.enumerated().map {
      Listener.Event(22 + $0.offset, $0.element, key: "a")
    }
    let problems = problems {
      $0.listeners = [Listener(.pair, .children, began: 5, returned: 6, events: events)]
    }
    #expect(problems.count == 1, "\(problems)")
  }

  /// One listener must not hear of the second write before another hears of the first; and a write is
  /// answered after its events.
  @Test func theOrderOfListeners() {
    let problems = problems { history in
      history.calls[0].answered = 40
      history.calls[1].answered = 41
      history.listeners = [
        Listener(
          .a, .value, began: 5, returned: 6,
          events: [.init(7, ""), .init(22, "1"), .init(24, "2")]),
        Listener(
          .root, .value, began: 5, returned: 6,
          events: [.init(7, ""), .init(25, "{pair:{a:1}}"), .init(26, "{pair:{a:2}}")]),
      ]
    }
    #expect(problems.count == 1)
    #expect(problems.first?.contains("got write 1 after") == true)
    let answers = self.problems { history in
      history.listeners = [
        Listener(
          .a, .value, began: 5, returned: 6,
          events: [.init(7, ""), .init(22, "1"), .init(32, "2")])
      ]
    }
    #expect(
      answers == ["call 2 was answered before the listener to «pair/a» since 5 got its event"])
  }

  /// It may have been in the middle of one call; more than that is an error.
  @Test(arguments: [(removed: 21, isRight: false), (removed: 22, isRight: true)])
  func aListenerThatWasRemoved(removed: Int, isRight: Bool) {
    let problems = problems { history in
      var listener = Listener(
        .a, .value, began: 5, returned: 6, ended: 20,
        events: [.init(7, ""), .init(22, "1"), .init(23, "2")])
      listener.removed = removed
      history.listeners = [listener]
    }
    #expect(problems.contains { $0.contains("after its removal") } == !isRight, "\(problems)")
  }
}
