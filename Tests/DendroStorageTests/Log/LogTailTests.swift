import Testing

@testable import DendroStorage

@Suite struct LogTailTests {
  static let combinations: [LogTail] = LogTail.Remainder.allCases.flatMap { remainder in
    LogTail.Successor.allCases.flatMap { successor in
      [false, true].map {
        LogTail(remainder: remainder, successor: successor, isNextProvenDurable: $0)
      }
    }
  }

  @Test("each combination matches exactly one row")
  func completeAndDisjoint() {
    for tail in Self.combinations {
      #expect(LogTail.table.filter { $0.matches(tail) }.count == 1, "\(tail)")
    }
  }

  @Test("each row is matched by some combination")
  func noDeadRow() {
    for row in LogTail.table {
      #expect(Self.combinations.contains { row.matches($0) }, "\(row.reason)")
    }
  }

  @Test("nothing proven durable is ever cut, and only a last segment ends a log")
  func principles() {
    for tail in Self.combinations {
      switch tail.row.decision {
      case .end, .torn: #expect(tail.successor == .none && !tail.isNextProvenDurable)
      case .next: #expect([.confirms, .continues].contains(tail.successor))
      case .nextBehindDamage: #expect(tail.successor == .continues && tail.remainder == .damaged)
      case .corrupt: break
      }
    }
  }
}
