/// An instruction of the stack machine that evaluates expressions: a few plain bytes.
///
/// Numbers are indices: of a constant, path, name or pattern of the program, or of an instruction. «Top» is
/// the value on top of the stack; what an instruction takes is popped, and its result pushed.
enum Instruction {
  // MARK: Values
  case constant(Int32)
  case auth
  case now
  case root
  case data
  case newData
  /// The key that a `$` name is bound to.
  case binding(Int32)
  /// What no operation has a use for: `query` itself, a regular expression, a method that is not called.
  case unusable
  /// Replaces the top by ``unusable``.
  case makeUnusable
  /// Replaces the top, which is `query`, by its property.
  case query(QueryProperty)

  // MARK: Snapshots
  /// The snapshot at a constant path below the top.
  case childAt(Int32)
  case child
  case parent
  case value
  case priority
  case exists
  case hasChildAt(Int32)
  case hasChild
  case hasAnyChild
  /// Takes so many strings, and the snapshot below them.
  case hasChildren(Int32)
  /// Whether the top has a child at each of so many constant paths, from one on.
  case hasChildrenAt(first: Int32, count: UInt16)
  case isNumber
  case isString
  case isBoolean

  // MARK: Strings
  case length
  case contains
  case beginsWith
  case endsWith
  case replace
  case lowercase
  case uppercase
  case matches(Int32)

  // MARK: Below auth
  case authProperty(Int32)
  case authUserID
  case property(Int32)
  case index
  /// `length` of what may be a string, or an object that has such a property.
  case lengthOfAny

  // MARK: Operators
  case not
  case negate
  case equal
  case notEqual
  case equalTo(Int32)
  case notEqualTo(Int32)
  case isNull
  case isNotNull
  case less
  case lessOrEqual
  case greater
  case greaterOrEqual
  case add
  case subtract
  case multiply
  case divide
  case remainder

  // MARK: Jumps
  case jump(Int32)
  /// Jumps if the top is false, and keeps it then.
  case jumpIfFalse(Int32)
  /// Jumps if the top is true, and keeps it then.
  case jumpIfTrue(Int32)
  /// Takes the top, and jumps if it is false.
  case takeJumpIfFalse(Int32)
}
