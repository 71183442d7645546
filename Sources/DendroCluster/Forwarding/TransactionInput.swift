import DendroEngine
import DendroTree
import Synchronization

/// What a transaction was made from: a hash of what was at its path.
///
/// Two servers that have the same log have the same data, to the byte.
struct TransactionInput: Hashable, Sendable {
  static let hashByteCount = SHA256.byteCount

  let hash: [UInt8]

  init(hash: [UInt8]) { self.hash = hash }

  init(_ node: Node) {
    let hash = SHA256()
    hash.update(EncodedWrite(.set(.root, node)).keptBytes)
    self.hash = hash.finish()
  }
}

/// Lets a transaction's result be written if what it was made from is still there.
final class TransactionInputJudge: WriteJudge {
  private let input: TransactionInput
  private let path: Path

  init(_ input: TransactionInput, at path: Path) {
    self.input = input
    self.path = path
  }

  /// The hash may take long.
  var isBounded: Bool { false }

  func judge(_ state: JudgedState) -> Judgement {
    let path = path
    let node = state.before.node(at: path)
    return Judgement(
      isAllowed: TransactionInput(node) == input,
      .wherever { before, _ in before.node(at: path).isIdentical(to: node) })
  }
}
