extension Command.Option {
  static let parity = Self(
    name: "parity",
    summary: "beside each file its parity, a fifteenth of its size, from which 'repair' mends it")
  static let noParity = Self(name: "no-parity", summary: "write no parity")
}

extension Arguments {
  /// Whether parity is to be written.
  ///
  /// - Parameter standard: if neither option is given.
  func wantsParity(otherwise standard: Bool) throws -> Bool {
    guard has(.parity) else { return has(.noParity) ? false : standard }
    if has(.noParity) { throw Failure.usage("--parity and --no-parity exclude each other") }
    return true
  }
}
