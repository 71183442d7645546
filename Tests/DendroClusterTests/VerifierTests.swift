import DendroEngine
import DendroStorage
import DendroTree
import Foundation
import Testing

@testable import DendroCluster

@Suite("A server's part in comparing all servers")
struct VerifierTests {
  private let verifier = Verifier()

  private func request(_ id: UInt8, _ lsn: UInt64? = nil) -> VerificationRequest {
    VerificationRequest(id: [id], lsn: lsn.map { LogSequenceNumber($0) })
  }

  private func step(_ request: VerificationRequest?, at lsn: UInt64) -> Verifier.Step {
    verifier.step(request, at: LogSequenceNumber(lsn))
  }

  private func roots(_ number: UInt64) -> TreeRoots {
    TreeRoots(data: Node(.integer(Int64(number))))
  }

  private func keep(_ lsns: ClosedRange<UInt64>) {
    for lsn in lsns { verifier.keep(roots(lsn), at: LogSequenceNumber(lsn)) }
  }

  /// The answer, once it is there.
  private func answer(
    to request: VerificationRequest, at lsn: UInt64
  ) async throws -> VerificationAnswer? {
    var found: VerificationAnswer?
    try await eventually("there is an answer") {
      if case .answer(let answer) = step(request, at: lsn) { found = answer }
      return found != nil
    }
    return found
  }

  private func isNothing(_ step: Verifier.Step) -> Bool {
    if case .nothing = step { true } else { false }
  }

  @Test("it keeps states once it is asked, and hashes that of the write that is named")
  func hashes() async throws {
    #expect(!verifier.wantsState)
    keep(1...3)
    guard case .begin = step(request(1), at: 3) else {
      Issue.record("it does not begin")
      return
    }
    #expect(verifier.wantsState)
    keep(3...9)
    #expect(isNothing(step(request(1), at: 9)))
    // A server that is behind goes on to keep states.
    #expect(isNothing(step(request(1, 12), at: 9)))
    #expect(verifier.wantsState)
    keep(10...15)
    let found = try #require(try await answer(to: request(1, 12), at: 15))
    #expect(found.lsn == LogSequenceNumber(12))
    #expect(found.hashes?.data == CheckpointCoding.contentHash(of: roots(12).data))
    #expect(found.hashes?.system == CheckpointCoding.contentHash(of: .empty))
    #expect(!verifier.wantsState)
    // Said again, since an answer may be lost; until the request is gone.
    #expect(try await answer(to: request(1, 12), at: 16) == found)
    #expect(isNothing(step(nil, at: 16)))
    #expect(isNothing(step(nil, at: 16)))
  }

  @Test("it says that it has no state which it did not keep, and nothing if it was asked too late")
  func missing() async throws {
    _ = step(request(1), at: 3)
    keep(3...4)
    // As of a leader that had gone on before its state could be kept.
    keep(6...7)
    let found = try #require(try await answer(to: request(1, 5), at: 7))
    #expect(found.hashes == nil)
    #expect(found.lsn == LogSequenceNumber(5))
    #expect(isNothing(step(request(2, 8), at: 9)))
    #expect(!verifier.wantsState)
    #expect(isNothing(step(request(2, 8), at: 9)))
  }

  @Test("another request takes the place of one that was left behind")
  func replaced() async throws {
    _ = step(request(1), at: 3)
    keep(3...5)
    guard case .begin = step(request(2), at: 5) else {
      Issue.record("it does not begin anew")
      return
    }
    keep(5...6)
    #expect(try await answer(to: request(2, 4), at: 6)?.hashes == nil)
  }
}
