/// What a transaction's block has decided on.
public final class TransactionResult {
  enum Decision {
    case write(MutableData)
    case abort
  }

  let decision: Decision

  private init(_ decision: Decision) { self.decision = decision }

  /// `value` is to be what is at the transaction's location: usually the data that the block was given,
  /// changed or not.
  public class func success(withValue value: MutableData) -> TransactionResult {
    TransactionResult(.write(value))
  }

  /// Nothing is to be written.
  public class func abort() -> TransactionResult { TransactionResult(.abort) }
}
