/// Throws if a result is wrong, since its figure would be meaningless.
func expect(_ condition: Bool, _ claim: String) throws {
  if !condition { throw WrongResult(claim: claim) }
}

struct WrongResult: Error, CustomStringConvertible {
  let claim: String
  var description: String { "wrong result; expected: \(claim)" }
}
